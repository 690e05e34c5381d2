#include <vector>

#include <cuda_runtime_api.h>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda_calls.h"
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

std::shared_ptr<CUevent_st> new_event(int device, bool timed) {
  const CurrentDevice current(device);
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
             "making an event");
  return {event, [](cudaEvent_t e) { cudaEventDestroy(e); }};
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
  check_cuda(cudaEventElapsedTime(&ms, from, to), "timing two events");
  return static_cast<double>(ms);
}

void copy(void* to, const void* from, std::size_t bytes, CUstream_st* stream) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copying");
}

void set_zero(void* to, std::size_t bytes, CUstream_st* stream) {
  check_cuda(cudaMemsetAsync(to, 0, bytes, stream), "zeroing memory");
}

void begin_capture(CUstream_st* stream) {
  // Relaxed: allocations on other streams and by other threads go on.
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "gathering launches");
}

std::shared_ptr<CUgraph_st> end_capture(CUstream_st* stream) {
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream, &graph), "gathering launches");
  return {graph, [](cudaGraph_t g) { cudaGraphDestroy(g); }};
}

void drop_capture(CUstream_st* stream) noexcept {
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) cudaGraphDestroy(graph);
  cudaGetLastError();  // or the next launch would report it
}

std::string kinds_of_nodes(CUgraph_st* graph) {
  std::size_t count = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &count), "asking a graph");
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) check_cuda(cudaGraphGetNodes(graph, nodes.data(), &count), "asking a graph");
  std::string kinds;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    check_cuda(cudaGraphNodeGetType(node, &type), "asking a graph");
    kinds += static_cast<char>('a' + type);
  }
  return kinds;
}

std::shared_ptr<CUgraphExec_st> make_executable(CUgraph_st* graph) {
  cudaGraphExec_t executable = nullptr;
  check_cuda(cudaGraphInstantiate(&executable, graph, 0), "preparing a graph");
  return {executable, [](cudaGraphExec_t e) { cudaGraphExecDestroy(e); }};
}

bool update(CUgraphExec_st* executable, CUgraph_st* graph) {
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t status = cudaGraphExecUpdate(executable, graph, &info);
  if (status == cudaErrorGraphExecUpdateFailure) {
    cudaGetLastError();  // or the next launch would report it
    return false;
  }
  check_cuda(status, "updating a graph");
  return true;
}

void launch(CUgraphExec_st* executable, CUstream_st* stream) {
  check_cuda(cudaGraphLaunch(executable, stream), "launching a graph");
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
