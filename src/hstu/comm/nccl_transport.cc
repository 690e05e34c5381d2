#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/comm/device_transport.h"
#include "hstu/comm/nccl_calls.h"
#include "hstu/comm/peer_watch.h"
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
      : rank_(ranks.rank()), size_(ranks.size()), device_(device), last_(device), pending_(ranks, [this] {
          if (watch_) watch_->check_not_given_up();
        }) {
    nccl::UniqueId id;
    if (rank_ == 0) check_nccl(calls_.get_unique_id(&id), "ncclGetUniqueId");
    ranks.broadcast(std::span<char>(id.bytes), 0);
    make_current(device);  // before the communicator exists
    check_nccl(calls_.init_rank(&comm_, size_, id, rank_), "ncclCommInitRank");
    watch_.emplace(
        ranks, [this] { return is_idle(); }, [this] { abort(); });
  }
  // After an error the other ranks may never come to what this one has begun.
  ~NcclTransport() override {
    watch_.reset();
    if (std::uncaught_exceptions() > 0)
      abort();
    else if (comm_ != nullptr)
      calls_.destroy(comm_);
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
      abort();
      throw;
    }
  }

 protected:
  void move(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
            const Stream& stream) override {
    nccl::Comm* const comm = begin_move();
    stream.wait(last_);
    check_call(calls_.group_start(), "ncclGroupStart");
    for (const DeviceMessage& m : sends) {
      check_call(
          calls_.send(m.data, static_cast<std::size_t>(m.bytes), nccl::kBytes, m.rank, comm, stream.cuda()),
          "ncclSend");
    }
    for (const DeviceMessage& m : receives) {
      check_call(calls_.receive(m.data, static_cast<std::size_t>(m.bytes), nccl::kBytes, m.rank, comm,
                                stream.cuda()),
                 "ncclRecv");
    }
    check_call(calls_.group_end(), "ncclGroupEnd");
    end_move(stream);
    std::set<int> others;
    for (const DeviceMessage& m : sends) others.insert(m.rank);
    for (const DeviceMessage& m : receives) others.insert(m.rank);
    pending_.add(begun(), {others.begin(), others.end()}, [end = last_] { return end.reached(); });
  }

 private:
  // move() may wait for another rank inside of NCCL, which only an abort from the watch's thread ends.
  nccl::Comm* begin_move() {
    const std::scoped_lock lock(mutex_);
    watch_->check_all_run();
    require(comm_ != nullptr, "an exchange after a rank was lost");
    moves_ = true;
    return comm_;
  }
  void end_move(const Stream& stream) {
    const std::scoped_lock lock(mutex_);
    last_ = Event(stream.device());
    last_.record(stream);
    moves_ = false;
  }
  void check_call(nccl::Result result, const char* what) const {
    if (result != 0) watch_->check_not_given_up();
    check_nccl(result, what);
  }
  bool is_idle() {
    const std::scoped_lock lock(mutex_);
    return !moves_ && last_.reached();
  }
  // Ends the kernels and calls that wait for other ranks.
  void abort() {
    nccl::Comm* comm = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      comm = std::exchange(comm_, nullptr);
    }
    if (comm == nullptr) return;
    make_current(device_);
    calls_.abort(comm);
  }

  const nccl::Calls& calls_ = nccl::calls();
  std::mutex mutex_;  // guards comm_, last_ and moves_, which the watch's thread reads
  nccl::Comm* comm_ = nullptr;
  int rank_, size_;
  Device device_;
  Event last_;  // the end of the last call's messages
  bool moves_ = false;
  PendingExchanges pending_;
  std::optional<PeerWatch> watch_;  // of the complete communicator; ends first
};

}  // namespace

std::unique_ptr<DeviceTransport> nccl_transport(Communicator& comm, Device device) {
  return std::make_unique<NcclTransport>(comm, device);
}

}  // namespace hstu
