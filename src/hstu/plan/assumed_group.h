// A group of ranks that are not here, for dry steps.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/comm/groups.h"

namespace hstu {

// Its first rank. An exchange is an InternalError: dry operations have none.
class AssumedRanks final : public Communicator {
 public:
  explicit AssumedRanks(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }

 protected:
  void reduce(void*, std::size_t, CommType) override { refuse(); }
  std::vector<std::int64_t> gather_sizes(std::int64_t) override { refuse(); }
  void gather(const void*, std::span<const std::int64_t>, void*) override { refuse(); }
  std::vector<std::int64_t> exchange_sizes(std::span<const std::int64_t>) override { refuse(); }
  void exchange(const void*, std::span<const std::int64_t>, void*, std::span<const std::int64_t>) override {
    refuse();
  }
  void send_from(int, void*, std::size_t) override { refuse(); }
  void meet() override { refuse(); }
  std::unique_ptr<Communicator> join(std::span<const int>, std::span<const std::int64_t>) override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() { throw InternalError("an exchange with ranks that are assumed"); }

  int size_;
};

}  // namespace hstu
