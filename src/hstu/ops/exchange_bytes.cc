#include "hstu/ops/exchange_bytes.h"

#include <vector>

#include "hstu/base/error.h"

namespace hstu::ops {

void exchange_bytes(Tensor from, std::span<const std::int64_t> sent, Tensor to,
                    std::span<const std::int64_t> received, const Group& group, const Context& context) {
  if (context.memory->dry() != nullptr) return;
  if (group.device != nullptr) {
    std::vector<DeviceMessage> sends, receives;
    std::byte *next = from.mutable_raw(), *place = to.mutable_raw();
    for (int r = 0; r < group.size(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      sends.push_back({r, next, sent.empty() ? static_cast<std::int64_t>(from.bytes()) : sent[i]});
      receives.push_back({r, place, received[i]});
      if (!sent.empty()) next += sent[i];
      place += received[i];
    }
    return group.device->exchange(sends, receives, context.stream);
  }
  require(context.device().is_host(), "an exchange on {} of ranks that compute on processors",
          context.device());
  const std::span<const std::byte> bytes(from.raw(), from.bytes());
  const std::vector<std::byte> all =
      sent.empty() ? group.host.all_gather(bytes) : group.host.all_to_all(bytes, sent);
  require(all.size() == to.bytes(), "an exchange of rows: expected {} bytes, found {}", to.bytes(),
          all.size());
  copy_bytes(to.mutable_raw(), all.data(), all.size(), context.stream);
}

}  // namespace hstu::ops
