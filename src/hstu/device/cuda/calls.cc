#include <cuda_runtime_api.h>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda_calls.h"
#include "hstu/device/launch_recording.h"
#include "hstu/device/memory_pool.h"

namespace hstu::cuda {

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // or the next launch would report it
  return 0;
}

std::string bus_address(int device) {
  char address[32] = "";
  check_cuda(cudaDeviceGetPCIBusId(address, sizeof address, device), "asking where a GPU is");
  return address;
}

void make_current(int device) {
  check_cuda(cudaSetDevice(device), "choosing a GPU");
}

void memory(int device, std::int64_t& total, std::int64_t& free) {
  const CurrentDevice current(device);
  std::size_t all = 0, unused = 0;
  check_cuda(cudaMemGetInfo(&unused, &all), "asking for a GPU's memory");
  total = static_cast<std::int64_t>(all), free = static_cast<std::int64_t>(unused);
}

std::shared_ptr<CUstream_st> new_stream(int device) {
  const CurrentDevice current(device);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return {stream, [](cudaStream_t s) { cudaStreamDestroy(s); }};
}

void synchronize(CUstream_st* stream) {
  check_cuda(cudaStreamSynchronize(stream), "waiting for a stream");
}

void wait(CUstream_st* stream, CUevent_st* event) {
  check_cuda(cudaStreamWaitEvent(stream, event, cudaEventWaitDefault), "waiting for an event");
}

void record(CUevent_st* event, CUstream_st* stream) {
  check_cuda(cudaEventRecord(event, stream), "recording an event");
}

bool reached(CUevent_st* event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // or the next launch would report it
    return false;
  }
  check_cuda(status, "asking for an event");
  return true;
}

void synchronize(CUevent_st* event) {
  check_cuda(cudaEventSynchronize(event), "waiting for an event");
}

double milliseconds(CUevent_st* from, CUevent_st* to) {
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, from, to), "timing two events that were reached");
  return static_cast<double>(ms);
}

namespace {

void require_no_recording(CUstream_st* stream) {
  require(LaunchRecording::that_records(stream) == nullptr,
          "launches are recorded on this stream, and nothing but kernels may be put on it");
}

}  // namespace

void copy(void* to, const void* from, std::size_t bytes, CUstream_st* stream) {
  require_no_recording(stream);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copying");
}

void set_zero(void* to, std::size_t bytes, CUstream_st* stream) {
  require_no_recording(stream);
  check_cuda(cudaMemsetAsync(to, 0, bytes, stream), "zeroing memory");
}

namespace {

void check_pinned(cudaError_t status, std::size_t bytes) {
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemory(fmt::format("no page-locked host memory for {} bytes: make batches smaller", bytes));
  }
  check_cuda(status, "allocating page-locked memory");
}

}  // namespace

void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check_pinned(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), bytes);
  return memory;
}

void free_pinned(void* memory) noexcept {
  cudaFreeHost(memory);
}

void pin(void* memory, std::size_t bytes) {
  check_pinned(cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped), bytes);
}

void unpin(void* memory) noexcept {
  cudaHostUnregister(memory);
}

}  // namespace hstu::cuda
