#include <exception>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/comm/device_transport.h"
#include "hstu/comm/nccl_calls.h"
#include "hstu/comm/pending_exchanges.h"
#include "hstu/comm/transport.h"

namespace hstu {
namespace {

void check_nccl(nccl::Result result, const char* what) {
  check(result == 0, "NCCL: {}: {}. NCCL_DEBUG=WARN in the environment makes NCCL say more", what,
        nccl::calls().error_string(result));
}

class NcclTransport final : public DeviceTransport {
 public:
  NcclTransport(Communicator& ranks, Device device)
      : rank_(ranks.rank()), size_(ranks.size()), last_(device), pending_(ranks) {
    nccl::UniqueId id;
    if (rank_ == 0) check_nccl(calls_.get_unique_id(&id), "ncclGetUniqueId");
    ranks.broadcast(std::span<char>(id.bytes), 0);
    make_current(device);  // before the communicator exists
    check_nccl(calls_.init_rank(&comm_, size_, id, rank_), "ncclCommInitRank");
  }
  // After an error the other ranks may never come to what this one has begun.
  ~NcclTransport() override {
    if (comm_ == nullptr) return;
    if (std::uncaught_exceptions() == 0)
      calls_.destroy(comm_);
    else
      calls_.abort(comm_);
  }
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override {
    return fmt::format("NCCL {}.{}.{}", calls_.version / 10000, calls_.version / 100 % 100,
                       calls_.version % 100);
  }
  std::unique_ptr<DeviceTransport> part(Communicator& group) override { return view_of(*this, group); }
  void wait(std::int64_t exchanges) override {
    try {
      pending_.wait(exchanges);
    } catch (const LostRank&) {
      calls_.abort(std::exchange(comm_, nullptr));  // ends the kernels that wait for the other ranks
      throw;
    }
  }

 protected:
  void move(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
            const Stream& stream) override {
    require(comm_ != nullptr, "an exchange after a rank was lost");
    stream.wait(last_);
    check_nccl(calls_.group_start(), "ncclGroupStart");
    for (const DeviceMessage& m : sends) {
      check_nccl(
          calls_.send(m.data, static_cast<std::size_t>(m.bytes), nccl::kBytes, m.rank, comm_, stream.cuda()),
          "ncclSend");
    }
    for (const DeviceMessage& m : receives) {
      check_nccl(calls_.receive(m.data, static_cast<std::size_t>(m.bytes), nccl::kBytes, m.rank, comm_,
                                stream.cuda()),
                 "ncclRecv");
    }
    check_nccl(calls_.group_end(), "ncclGroupEnd");
    last_ = Event(stream.device());
    last_.record(stream);
    std::set<int> others;
    for (const DeviceMessage& m : sends) others.insert(m.rank);
    for (const DeviceMessage& m : receives) others.insert(m.rank);
    pending_.add(begun(), {others.begin(), others.end()}, [end = last_] { return end.reached(); });
  }

 private:
  const nccl::Calls& calls_ = nccl::calls();
  nccl::Comm* comm_ = nullptr;
  int rank_, size_;
  Event last_;  // the end of the last call's messages
  PendingExchanges pending_;
};

}  // namespace

std::unique_ptr<DeviceTransport> nccl_transport(Communicator& comm, Device device) {
  return std::make_unique<NcclTransport>(comm, device);
}

}  // namespace hstu
