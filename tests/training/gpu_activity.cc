#include "training/gpu_activity.h"

#if defined(HSTU_WITH_CUDA) && __has_include(<cupti.h>)

#include <cstdlib>

#include <cupti.h>
#include <dlfcn.h>

namespace hstu::testing {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

GpuActivity counted;
decltype(&cuptiActivityGetNextRecord) next_record = nullptr;

void give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *bytes = kBufferBytes;
  *most_records = 0;
}

void count(const CUpti_Activity& record) {
  if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
    const bool to_host = copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    if (!to_host && copy.copyKind != CUPTI_ACTIVITY_MEMCPY_KIND_HTOD) return;
    GpuActivity::Copies& copies = to_host ? counted.to_host : counted.to_gpu;
    ++copies.count;
    copies.bytes += static_cast<std::int64_t>(copy.bytes);
    const auto host_memory = to_host ? copy.dstKind : copy.srcKind;
    counted.pageable_copies += host_memory == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE ? 1 : 0;
  } else if (record.kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) {
    const auto& wait = reinterpret_cast<const CUpti_ActivitySynchronization2&>(record);
    counted.device_synchronisations +=
        wait.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE ? 1 : 0;
  } else if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    ++counted.kernels;
  }
}

void take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (valid > 0 && next_record(buffer, valid, &record) == CUPTI_SUCCESS) count(*record);
  std::free(buffer);
}

}  // namespace

std::optional<GpuActivity> gpu_activity_of(const std::function<void()>& work, std::string& why) {
  void* const library = dlopen("libcupti.so.13", RTLD_NOW);
  if (library == nullptr) {
    why = "no libcupti.so.13 in the library path";
    return std::nullopt;
  }
  bool found = true;
  const auto load = [&](auto* function, const char* name) {
    auto* const symbol = reinterpret_cast<decltype(function)>(dlsym(library, name));
    found = found && symbol != nullptr;
    return symbol;
  };
  auto* const callbacks = load(&cuptiActivityRegisterCallbacks, "cuptiActivityRegisterCallbacks");
  auto* const enable = load(&cuptiActivityEnable, "cuptiActivityEnable");
  auto* const disable = load(&cuptiActivityDisable, "cuptiActivityDisable");
  auto* const flush = load(&cuptiActivityFlushAll, "cuptiActivityFlushAll");
  next_record = load(&cuptiActivityGetNextRecord, "cuptiActivityGetNextRecord");
  if (!found || callbacks(give_buffer, take_buffer) != CUPTI_SUCCESS) {
    why = "CUPTI does not work here";
    return std::nullopt;
  }
  constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                           CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
  for (const CUpti_ActivityKind kind : kKinds) {
    if (enable(kind) == CUPTI_SUCCESS) continue;
    why = "CUPTI may not be used here (another profiler, or no permission)";
    return std::nullopt;
  }
  flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  counted = {};
  work();
  flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  for (const CUpti_ActivityKind kind : kKinds) disable(kind);
  return counted;
}

}  // namespace hstu::testing

#else

namespace hstu::testing {

std::optional<GpuActivity> gpu_activity_of(const std::function<void()>&, std::string& why) {
  why = "built without CUPTI";
  return std::nullopt;
}

}  // namespace hstu::testing

#endif
