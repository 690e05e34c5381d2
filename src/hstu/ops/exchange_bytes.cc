#include "hstu/ops/exchange_bytes.h"

#include <numeric>
#include <utility>
#include <vector>

#include "hstu/base/error.h"

namespace hstu::ops {
namespace {

using Bytes = std::span<const std::int64_t>;

std::int64_t offset_of(Bytes bytes, int rank) {
  return std::accumulate(bytes.begin(), bytes.begin() + rank, std::int64_t{0});
}

// Bytes for each rank (r) at their offsets in a tensor's memory; `skipped` has none.
std::vector<DeviceMessage> messages(Tensor tensor, Bytes bytes, int ranks, int skipped = -1) {
  std::vector<DeviceMessage> result;
  for (int r = 0; r < ranks; ++r) {
    if (r == skipped) continue;
    if (bytes.empty())
      result.push_back({r, tensor.mutable_raw(), static_cast<std::int64_t>(tensor.bytes())});
    else
      result.push_back({r, tensor.mutable_raw() + offset_of(bytes, r), bytes[static_cast<std::size_t>(r)]});
  }
  return result;
}

// Through the host: what the ranks have sent, by rank, in the order of `receives`.
void receive(std::span<const std::byte> all, std::span<const DeviceMessage> receives,
             const Context& context) {
  for (const DeviceMessage& message : receives) {
    require(message.bytes <= std::ssize(all), "an exchange of rows: {} bytes are too few", all.size());
    copy_bytes(message.data, all.data(), static_cast<std::size_t>(message.bytes), context.stream);
    all = all.subspan(static_cast<std::size_t>(message.bytes));
  }
  require(all.empty(), "an exchange of rows: {} bytes are too many", all.size());
}

void check_on_host(const Context& context) {
  require(context.device().is_host(), "an exchange on {} of ranks that compute on processors",
          context.device());
}

}  // namespace

std::vector<std::int64_t> bytes_of_rows(std::vector<std::int64_t> rows, const Tensor& of) {
  for (std::int64_t& count : rows) count *= of.cols() * static_cast<std::int64_t>(size_of(of.dtype()));
  return rows;
}

void exchange_messages(const std::vector<DeviceMessage>& sends, const std::vector<DeviceMessage>& receives,
                       const Group& group, const Context& context) {
  if (context.memory->dry() != nullptr) return;
  if (group.device != nullptr) return group.device->exchange(sends, receives, context.stream);
  check_on_host(context);
  std::vector<std::byte> bytes;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(group.size()), 0);
  for (const DeviceMessage& message : sends) {
    bytes.insert(bytes.end(), message.data, message.data + message.bytes);
    counts[static_cast<std::size_t>(message.rank)] += message.bytes;
  }
  receive(group.host.all_to_all(std::span<const std::byte>(bytes), std::span<const std::int64_t>(counts)),
          receives, context);
}

void exchange_bytes(const Tensor& from, Bytes sent, const Tensor& to, Bytes received, const Group& group,
                    const Context& context) {
  if (context.memory->dry() != nullptr) return;
  const std::vector<DeviceMessage> receives = messages(to, received, group.size());
  if (group.device != nullptr || !sent.empty())
    return exchange_messages(messages(from, sent, group.size()), receives, group, context);
  check_on_host(context);
  receive(group.host.all_gather(std::span<const std::byte>(from.raw(), from.bytes())), receives, context);
}

void exchange_bytes_of_others(const Tensor& from, Bytes sent, const Tensor& to, Bytes received,
                              const Group& group, const Context& context) {
  exchange_messages(messages(from, sent, group.size(), group.rank()),
                    messages(to, received, group.size(), group.rank()), group, context);
}

Stream ExchangeBeside::begin(const Group& group) {
  if (group.device == nullptr || context_.memory->dry() != nullptr || context_.device().is_host())
    return context_.stream;
  const Stream& beside = group.device->beside(context_.device());
  beside.wait(context_.stream);
  is_under_way_ = true;
  return beside;
}

ExchangeBeside::~ExchangeBeside() {
  try {
    finish();
  } catch (...) {  // only after another error, which ends the run
  }
}

void ExchangeBeside::finish() {
  if (std::exchange(is_under_way_, false)) context_.stream.wait(beside_);
}

}  // namespace hstu::ops
