#include <vector>

#include <cuda_runtime_api.h>

#include "hstu/attention/attention_cuda.h"
#include "hstu/base/error.h"
#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda/current_device.h"

namespace hstu::cuda {
namespace {

constexpr const char* kWhat = "attention";

// Devices that share page tables with the host read any host memory.
bool reads_host_memory() {
  return current_device_attribute(cudaDevAttrPageableMemoryAccess, kWhat) != 0;
}

void check_device_memory(const char* name, const void* address) {
  if (address == nullptr) return;
  cudaPointerAttributes attributes{};
  check_cuda(cudaPointerGetAttributes(&attributes, address), kWhat);
  check(attributes.type != cudaMemoryTypeUnregistered,
        "attention: {} is not device memory: the address {} is unknown to CUDA, perhaps a host pointer", name,
        fmt::ptr(address));
}

// `count` numbers of a list on the device; empty for a list that is null.
template <typename T>
std::vector<T> copy_to_host(const T* list, std::int64_t count, cudaStream_t stream) {
  if (list == nullptr) return {};
  std::vector<T> copy(static_cast<std::size_t>(count));
  check_cuda(cudaMemcpyAsync(copy.data(), list, copy.size() * sizeof(T), cudaMemcpyDefault, stream), kWhat);
  check_cuda(cudaStreamSynchronize(stream), kWhat);
  return copy;
}

template <typename T>
const T* address_of(const std::vector<T>& list) {
  return list.empty() ? nullptr : list.data();
}

}  // namespace

void check_attention_lists(const AttentionProblem& problem, cudaStream_t stream) {
  check_attention_on_gpu(problem);
  if (!reads_host_memory()) {
    check_device_memory("q", problem.q.data);
    check_device_memory("k", problem.k.data);
    check_device_memory("v", problem.v.data);
    check_device_memory("offsets", problem.offsets);
    check_device_memory("query_offsets", problem.query_offsets);
    check_device_memory("query_first", problem.query_first);
    check_device_memory("contexts", problem.contexts);
    check_device_memory("targets", problem.targets);
    check_device_memory("sample_scale", problem.sample_scale);
  }
  const auto offsets = copy_to_host(problem.offsets, problem.samples + 1, stream);
  const auto query_offsets = copy_to_host(problem.query_offsets, problem.samples + 1, stream);
  const auto query_first = copy_to_host(problem.query_first, problem.samples, stream);
  const auto contexts = copy_to_host(problem.contexts, problem.samples, stream);
  const auto targets = copy_to_host(problem.targets, problem.samples, stream);
  const auto scale = copy_to_host(static_cast<const float*>(problem.sample_scale), problem.samples, stream);
  AttentionProblem on_host = problem;
  on_host.offsets = address_of(offsets), on_host.query_offsets = address_of(query_offsets);
  on_host.query_first = address_of(query_first);
  on_host.contexts = address_of(contexts), on_host.targets = address_of(targets);
  on_host.sample_scale = address_of(scale);
  check_offsets(on_host);
  check_counts(on_host);
}

}  // namespace hstu::cuda
