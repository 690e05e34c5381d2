#include "hstu/comm/mpi_transport.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>

#include <dlfcn.h>

#include "hstu/base/clock.h"
#include "hstu/comm/mpi/calls.h"

namespace hstu {
namespace {

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(const HstuMpiCalls& mpi) : mpi_(mpi) {}
  // After an error the other ranks will not come to MPI_Finalize; mpirun ends them when this process ends.
  ~MpiTransport() override {
    if (std::uncaught_exceptions() == 0) mpi_.finish();
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return mpi_.rank; }
  int size() const override { return mpi_.ranks; }
  void send(int to, const void* data, std::size_t bytes) override { mpi_.send(to, data, bytes); }
  void receive(int from, void* data, std::size_t bytes) override { mpi_.receive(from, data, bytes); }

  // MPI's own waits spin. This one sleeps, longer and longer, so that ranks may be more than cores.
  bool progress(int milliseconds) override {
    const Clock::time_point start = Clock::now();
    for (int round = 0;; ++round) {
      moved_ += mpi_.progress();
      if (mpi_.pending(nullptr) == 0) return true;
      if (1000 * seconds_since(start) > milliseconds) return false;
      if (round > kRoundsBeforeSleep)
        std::this_thread::sleep_for(std::chrono::microseconds(std::min(round, kLongestSleep)));
    }
  }

  std::uint64_t bytes_moved() const override { return moved_; }

  std::vector<int> waiting_for() const override {
    std::vector<int> ranks(mpi_.pending(nullptr));
    mpi_.pending(ranks.data());
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

 private:
  static constexpr int kRoundsBeforeSleep = 50, kLongestSleep = 200;  // microseconds
  const HstuMpiCalls& mpi_;
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
  return {std::make_unique<MpiTransport>(*mpi), mpi->on_this_machine};
}

}  // namespace hstu
