#include "hstu/comm/device_transport.h"
#include "hstu/comm/sum_terms.h"
#include "hstu/device/memory_pool.h"

namespace hstu {

// Each rank adds one slice up, and sends the sums to all: as much travels as in a ring, and the order is that
// of ranks.
template <typename T>
void all_reduce_sum(T* values, std::int64_t n, DeviceTransport& ranks, MemoryPool& memory) {
  constexpr std::int64_t kBytes = sizeof(T);
  const std::int64_t size = ranks.size(), slice = (n + size - 1) / size;
  const auto first = [&](std::int64_t r) { return std::min(r * slice, n); };
  const auto message = [&](std::int64_t r, T* from, std::int64_t count) {
    return DeviceMessage{static_cast<int>(r), reinterpret_cast<std::byte*>(from), count * kBytes};
  };
  const std::int64_t me = ranks.rank(), mine = first(me + 1) - first(me);
  const Buffer scratch = memory.allocate(size * mine * kBytes);
  auto* const terms = reinterpret_cast<T*>(scratch.data());

  std::vector<DeviceMessage> sends, receives;
  for (std::int64_t r = 0; r < size; ++r) {
    sends.push_back(message(r, values + first(r), first(r + 1) - first(r)));
    receives.push_back(message(r, terms + r * mine, mine));
  }
  ranks.exchange(sends, receives, memory.stream());
  sum_terms<T>(terms, ranks.size(), mine, nullptr, values + first(me), memory.stream());

  sends.clear();
  receives.clear();
  for (std::int64_t r = 0; r < size; ++r) {
    if (r == me) continue;
    sends.push_back(message(r, values + first(me), mine));
    receives.push_back(message(r, values + first(r), first(r + 1) - first(r)));
  }
  ranks.exchange(sends, receives, memory.stream());
}

template void all_reduce_sum(float*, std::int64_t, DeviceTransport&, MemoryPool&);
template void all_reduce_sum(double*, std::int64_t, DeviceTransport&, MemoryPool&);
template void all_reduce_sum(std::int32_t*, std::int64_t, DeviceTransport&, MemoryPool&);

}  // namespace hstu
