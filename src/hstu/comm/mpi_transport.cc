#include "hstu/comm/mpi_transport.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include <dlfcn.h>

#include "hstu/base/clock.h"
#include "hstu/comm/mpi/calls.h"

namespace hstu {
namespace {

class MpiTransport final : public Transport {
 public:
  static constexpr int kWorld = 0;  // its channel

  // `ranks`: this transport's, as MPI counts them.
  MpiTransport(const HstuMpiCalls& mpi, int channel, std::vector<int> ranks)
      : mpi_(mpi), channel_(channel), ranks_(std::move(ranks)) {}
  // After an error the other ranks will not come to MPI_Finalize; mpirun ends them when this process ends.
  ~MpiTransport() override {
    if (channel_ == kWorld && std::uncaught_exceptions() == 0) mpi_.finish();
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return number_of(mpi_.rank); }
  int size() const override { return static_cast<int>(ranks_.size()); }
  void send(int to, const void* data, std::size_t bytes) override {
    mpi_.send(channel_, ranks_[static_cast<std::size_t>(to)], data, bytes);
  }
  void receive(int from, void* data, std::size_t bytes) override {
    mpi_.receive(channel_, ranks_[static_cast<std::size_t>(from)], data, bytes);
  }

  // MPI's own waits spin. This one sleeps, longer and longer, so that ranks may be more than cores.
  bool progress(int milliseconds) override {
    const Clock::time_point start = Clock::now();
    for (int round = 0;; ++round) {
      moved_ += mpi_.progress(channel_);
      if (mpi_.pending(channel_, nullptr) == 0) return true;
      if (1000 * seconds_since(start) > milliseconds) return false;
      if (round > kRoundsBeforeSleep)
        std::this_thread::sleep_for(std::chrono::microseconds(std::min(round, kLongestSleep)));
    }
  }

  std::uint64_t bytes_moved() const override { return moved_; }

  std::vector<int> waiting_for() const override {
    std::vector<int> ranks(mpi_.pending(channel_, nullptr));
    mpi_.pending(channel_, ranks.data());
    for (int& rank : ranks) rank = number_of(rank);
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  // The first channel that this rank has not used.
  std::int64_t offer() override { return next_channel; }
  std::unique_ptr<Transport> part(std::span<const int> members,
                                  std::span<const std::int64_t> offers) override {
    const auto channel = static_cast<int>(*std::max_element(offers.begin(), offers.end()));
    next_channel = channel + 1;
    std::vector<int> ranks;
    for (const int member : members) ranks.push_back(ranks_[static_cast<std::size_t>(member)]);
    return std::make_unique<MpiTransport>(mpi_, channel, std::move(ranks));
  }

 private:
  static constexpr int kRoundsBeforeSleep = 50, kLongestSleep = 200;  // microseconds
  static inline int next_channel = kWorld + 1;                        // of the process

  int number_of(int rank_of_mpi) const {
    return static_cast<int>(std::find(ranks_.begin(), ranks_.end(), rank_of_mpi) - ranks_.begin());
  }

  const HstuMpiCalls& mpi_;
  int channel_;
  std::vector<int> ranks_;
  std::uint64_t moved_ = 0;
};

void* load_plugin() {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const char* place : {"libhstu_mpi.so", "../lib/libhstu_mpi.so"}) {
    // Global: MPI loads plug-ins of its own, which look for MPI's symbols.
    if (void* const library = ::dlopen((folder / place).c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  fail_usage(
      "hstu was started by MPI, and {} cannot be loaded: {}. Install MPI and its development files, build "
      "again, or start the ranks with hstu train --ranks N or torchrun",
      (folder / "libhstu_mpi.so").string(), ::dlerror());
}

}  // namespace

MpiRanks mpi_transport() {
  void* const library = load_plugin();
  const auto start = reinterpret_cast<decltype(&hstu_mpi_start)>(::dlsym(library, "hstu_mpi_start"));
  check(start != nullptr, "libhstu_mpi.so is not part of hstu: build again");
  const HstuMpiCalls* const mpi = start();
  check(mpi->interface == HSTU_MPI_INTERFACE,
        "libhstu_mpi.so is of another version of hstu: build both again");
  std::vector<int> ranks(static_cast<std::size_t>(mpi->ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  return {std::make_unique<MpiTransport>(*mpi, MpiTransport::kWorld, std::move(ranks)), mpi->on_this_machine};
}

}  // namespace hstu
