#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/comm/device_transport.h"

namespace hstu {
namespace {

class StagedTransport final : public DeviceTransport {
 public:
  explicit StagedTransport(Communicator& comm) : comm_(comm) {}

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::string name() const override { return "the host's memory"; }
  std::unique_ptr<DeviceTransport> part(Communicator& group) override { return staged_transport(group); }

 protected:
  bool moves_together() const override { return true; }
  void move(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
            const Stream& stream) override {
    std::vector<char> out;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), 0);
    for (int r = 0; r < size(); ++r) {
      for (const DeviceMessage& message : sends) {
        if (message.rank != r) continue;
        out.resize(out.size() + static_cast<std::size_t>(message.bytes));
        copy_bytes(out.data() + out.size() - message.bytes, message.data,
                   static_cast<std::size_t>(message.bytes), stream);
        stream.synchronize();  // the next message may move the memory
        counts[static_cast<std::size_t>(r)] += message.bytes;
      }
    }
    const std::vector<char> in = comm_.all_to_all(std::span<const char>(out), counts);
    const char* at = in.data();
    for (int r = 0; r < size(); ++r) {
      for (const DeviceMessage& message : receives) {
        if (message.rank != r) continue;
        require(in.data() + in.size() - at >= message.bytes, "rank {} sent less than rank {} expects", r,
                rank());
        copy_bytes(message.data, at, static_cast<std::size_t>(message.bytes), stream);
        at += message.bytes;
      }
    }
    stream.synchronize();
  }

 private:
  Communicator& comm_;
};

}  // namespace

std::unique_ptr<DeviceTransport> staged_transport(Communicator& comm) {
  return std::make_unique<StagedTransport>(comm);
}

}  // namespace hstu
