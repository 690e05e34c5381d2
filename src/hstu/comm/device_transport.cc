#include "hstu/comm/device_transport.h"

#include "hstu/base/error.h"

namespace hstu {
namespace {

class TransportView final : public DeviceTransport {
 public:
  TransportView(DeviceTransport& all, const Communicator& group) : all_(all), group_(group) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  std::string name() const override { return all_.name(); }
  // For the latest one.
  void wait(std::int64_t) override { all_.wait(last_); }
  std::unique_ptr<DeviceTransport> part(Communicator& group) override { return view_of(all_, group); }

 protected:
  void move(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
            const Stream& stream) override {
    all_.exchange(of_all(sends), of_all(receives), stream);
    last_ = all_.begun();
  }

 private:
  std::vector<DeviceMessage> of_all(std::span<const DeviceMessage> messages) const {
    std::vector<DeviceMessage> renamed(messages.begin(), messages.end());
    for (DeviceMessage& message : renamed) message.rank = group_.world_rank(message.rank);
    return renamed;
  }

  DeviceTransport& all_;
  const Communicator& group_;
  std::int64_t last_ = 0;  // exchange of all_
};

}  // namespace

std::unique_ptr<DeviceTransport> view_of(DeviceTransport& all, const Communicator& group) {
  return std::make_unique<TransportView>(all, group);
}

const Stream& DeviceTransport::beside(Device device) {
  if (!beside_) beside_.emplace(device);
  return *beside_;
}

void DeviceTransport::exchange(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
                               const Stream& stream) {
  std::vector<DeviceMessage> to_others, from_others, to_itself, from_itself;
  for (const DeviceMessage& message : sends)
    if (message.bytes > 0) (message.rank == rank() ? to_itself : to_others).push_back(message);
  for (const DeviceMessage& message : receives)
    if (message.bytes > 0) (message.rank == rank() ? from_itself : from_others).push_back(message);
  require(to_itself.size() == from_itself.size(), "rank {} sends itself {} messages and receives {}", rank(),
          to_itself.size(), from_itself.size());
  if (moves_together() || !to_others.empty() || !from_others.empty()) {
    std::int64_t bytes = 0;
    for (const DeviceMessage& message : to_others) bytes += message.bytes;
    ++begun_;
    if (trace_ != nullptr) trace_->begin(stream, bytes);
    move(to_others, from_others, stream);
    if (trace_ != nullptr) trace_->end(stream);
  }
  for (std::size_t i = 0; i < to_itself.size(); ++i) {
    require(to_itself[i].bytes == from_itself[i].bytes, "rank {} sends itself {} bytes and receives {}",
            rank(), to_itself[i].bytes, from_itself[i].bytes);
    copy_bytes(from_itself[i].data, to_itself[i].data, static_cast<std::size_t>(to_itself[i].bytes), stream);
  }
}

}  // namespace hstu
