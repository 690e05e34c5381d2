#include "hstu/comm/thread_group.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "hstu/base/thread_stacks.h"
#include "hstu/base/threads.h"
#include "hstu/comm/transport.h"

namespace hstu {
namespace {

// What the ranks of one group share: where each has its data for the collective under way, and a barrier that
// lets nobody wait for a rank that has failed.
class Shared {
 public:
  explicit Shared(std::size_t ranks, std::optional<int> failed = {}) : posts(ranks), failed_(failed) {}

  struct Post {
    const void* from = nullptr;
    void* to = nullptr;
    std::span<const std::int64_t> bytes = {};
    std::int64_t size = 0;
  };
  std::vector<Post> posts;  // (ranks), each written by its rank before a wait()

  void wait(const Communicator& comm) {
    std::unique_lock lock(mutex_);
    const std::int64_t turn = turn_;
    if (++waiting_ == std::ssize(posts)) {
      waiting_ = 0;
      ++turn_;
      all_came_.notify_all();
    } else {
      all_came_.wait(lock, [&] { return turn_ != turn || failed_; });
    }
    if (failed_) {
      throw EndedRank(fmt::format("rank {}{}: rank {} has failed", comm.world_rank(comm.rank()),
                                  comm.group_text(), *failed_));
    }
  }
  // Rank `rank` of the world has failed: so have this group and those that were split off.
  void fail_all(int rank) {
    const std::scoped_lock lock(mutex_);
    if (!failed_) failed_ = rank;
    all_came_.notify_all();
    for (const auto& [key, group] : groups_) group->fail_all(rank);
  }
  // The group of so many ranks, of which `first` is the first, that the split of this number makes.
  Shared& group(int split, int first, std::size_t ranks) {
    const std::scoped_lock lock(mutex_);
    std::unique_ptr<Shared>& group = groups_[{split, first}];
    if (group == nullptr) group = std::make_unique<Shared>(ranks, failed_);
    return *group;
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_came_;
  std::ptrdiff_t waiting_ = 0;
  std::int64_t turn_ = 0;
  std::optional<int> failed_;
  std::map<std::pair<int, int>, std::unique_ptr<Shared>> groups_;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(Shared& shared, int rank) : shared_(shared), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(shared_.posts.size()); }

 protected:
  // Each rank adds one slice up, and hands the sums to all when nobody reads the terms any more.
  void reduce(void* values, std::size_t count, CommType type) override {
    if (type == CommType::f32) return reduce_as(static_cast<float*>(values), count);
    if (type == CommType::f64) return reduce_as(static_cast<double*>(values), count);
    if (type == CommType::i32) return reduce_as(static_cast<std::int32_t*>(values), count);
    reduce_as(static_cast<std::int64_t*>(values), count);
  }

  std::vector<std::int64_t> gather_sizes(std::int64_t mine) override {
    post({.size = mine});
    std::vector<std::int64_t> sizes;
    for (const Shared::Post& p : shared_.posts) sizes.push_back(p.size);
    wait();
    return sizes;
  }

  void gather(const void* mine, std::span<const std::int64_t> bytes, void* all) override {
    post({.from = mine});
    auto* to = static_cast<std::byte*>(all);
    for (std::size_t r = 0; r < shared_.posts.size(); ++r)
      to = append(to, static_cast<const std::byte*>(shared_.posts[r].from), bytes[r]);
    wait();
  }

  std::vector<std::int64_t> exchange_sizes(std::span<const std::int64_t> send) override {
    post({.bytes = send});
    std::vector<std::int64_t> sizes;
    for (const Shared::Post& p : shared_.posts) sizes.push_back(p.bytes[static_cast<std::size_t>(rank_)]);
    wait();
    return sizes;
  }

  void exchange(const void* send, std::span<const std::int64_t> send_bytes, void* receive,
                std::span<const std::int64_t> receive_bytes) override {
    post({.from = send, .bytes = send_bytes});
    auto* to = static_cast<std::byte*>(receive);
    for (std::size_t r = 0; r < shared_.posts.size(); ++r) {
      const Shared::Post& p = shared_.posts[r];
      std::int64_t at = 0;
      for (int before = 0; before < rank_; ++before) at += p.bytes[static_cast<std::size_t>(before)];
      to = append(to, static_cast<const std::byte*>(p.from) + at, receive_bytes[r]);
    }
    wait();
  }

  void send_from(int root, void* data, std::size_t bytes) override {
    post({.from = data});
    const void* const from = shared_.posts[static_cast<std::size_t>(root)].from;
    if (rank_ != root && bytes > 0) std::memcpy(data, from, bytes);
    wait();
  }

  void meet() override { wait(); }

  std::unique_ptr<Communicator> join(std::span<const int> members, std::span<const std::int64_t>) override {
    const auto me = std::find(members.begin(), members.end(), rank_);
    return std::make_unique<ThreadRank>(shared_.group(splits_++, members.front(), members.size()),
                                        static_cast<int>(me - members.begin()));
  }

 private:
  void wait() { shared_.wait(*this); }
  // Shows the others what this rank brings, and returns when all have done so.
  void post(const Shared::Post& mine) {
    shared_.posts[static_cast<std::size_t>(rank_)] = mine;
    wait();
  }
  static std::byte* append(std::byte* to, const std::byte* from, std::int64_t bytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return to + bytes;
  }

  template <typename T>
  void reduce_as(T* values, std::size_t count) {
    post({.to = values});
    const std::size_t ranks = shared_.posts.size(), mine = static_cast<std::size_t>(rank_);
    const std::size_t begin = count * mine / ranks, end = count * (mine + 1) / ranks;
    std::vector<T> sums(end - begin, T(0));
    for (const Shared::Post& p : shared_.posts) {
      for (std::size_t i = begin; i < end; ++i) sums[i - begin] += static_cast<const T*>(p.to)[i];
    }
    wait();
    for (const Shared::Post& p : shared_.posts)
      std::copy(sums.begin(), sums.end(), static_cast<T*>(p.to) + begin);
    wait();
  }

  Shared& shared_;
  int rank_;
  int splits_ = 0;  // so far; equal on all ranks
};

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  require(ranks >= 1, "expected at least one rank, found {}", ranks);
  Shared shared(static_cast<std::size_t>(ranks));
  FirstException failure;
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      name_this_thread(fmt::format("rank {}", rank));
      bool done = false;
      failure.run([&] {
        ThreadRank mine(shared, rank);
        body(mine);
        done = true;
      });
      if (!done) shared.fail_all(rank);
    });
  }
  threads.clear();
  failure.rethrow();
}

}  // namespace hstu
