// Communicator: the collectives of a group of ranks. Every rank of the group calls the same collectives in
// the same order with matching sizes; a call returns when this rank's part is complete.
//
// Forms: one rank (nothing to exchange), the threads of one process (thread_group.h), which is how every sum
// over ranks is tested, and processes (message_group.h). One thread of a rank at a time uses its
// communicator; groups that were split off have threads of their own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/error.h"

namespace hstu {

enum class CommType { f32, f64, i32, i64 };

template <typename T>
constexpr CommType comm_type_of();
template <>
constexpr CommType comm_type_of<float>() {
  return CommType::f32;
}
template <>
constexpr CommType comm_type_of<double>() {
  return CommType::f64;
}
template <>
constexpr CommType comm_type_of<std::int32_t>() {
  return CommType::i32;
}
template <>
constexpr CommType comm_type_of<std::int64_t>() {
  return CommType::i64;
}

// How long a rank waits for others that make no progress.
struct Patience {
  double warn_seconds = 60;      // then it says on stderr what it waits for
  double give_up_seconds = 600;  // then it throws LostRank (transport.h)
};

// What a rank does, for the words of one that waits.
struct Activity {
  std::int64_t step = -1;            // of training, from 0; -1: none yet
  std::string_view stage = "start";  // a literal
  std::string_view collective;       // the one under way, or the last
  std::int64_t collectives = 0;      // so far, this one included; equal on all ranks
};

// Is told of the collectives of a rank, for profiles.
class CollectiveTrace {
 public:
  virtual ~CollectiveTrace() = default;
  // `name` is a literal. `bytes`: what this rank gives to the collective.
  virtual void begin(std::string_view name, std::int64_t bytes) = 0;
  virtual void end() = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // 0 .. size() - 1
  virtual int size() const = 0;

  // Divides the ranks into groups: those that give the same `color`, from 0, each group in the order of the
  // ranks here. A collective. Nothing but its ranks joins a group to this communicator: both may be used at
  // the same time, by different threads. The group must be destroyed first. `name`: what the groups are for,
  // a literal, for messages. Throws InternalError on every rank, naming the one that asks for something else
  // than rank 0, unless all give the same name and no color is negative.
  std::unique_ptr<Communicator> split(int color, std::string_view name);

  // The number of this group's rank `rank` before the first split.
  int world_rank(int rank) const {
    return world_ranks_.empty() ? rank : world_ranks_[static_cast<std::size_t>(rank)];
  }
  // For messages, which count ranks as world_rank() does: " of tensor group 1 (ranks 2, 3)"; "" before a
  // split.
  const std::string& group_text() const { return group_text_; }

  // Of the following collectives. Groups that cannot lose a rank ignore it.
  void set_patience(const Patience& patience) { patience_ = patience; }
  const Patience& patience() const { return patience_; }
  // What the following collectives belong to. `stage` is a literal.
  void enter(std::string_view stage) { activity_.stage = stage; }
  void enter(std::int64_t step, std::string_view stage) {
    activity_.step = step;
    activity_.stage = stage;
  }
  const Activity& activity() const { return activity_; }
  // Is told of the following collectives; null: nobody.
  void set_trace(CollectiveTrace* trace) { trace_ = trace; }

  // values[i] becomes the sum of values[i] over all ranks, added in the order of ranks in T: every rank gets
  // the same bits on every run.
  template <typename T>
  void all_reduce_sum(std::span<T> values) {
    const Collective all_reduce(*this, "all-reduce", values.size_bytes());
    reduce(values.data(), values.size(), comm_type_of<T>());
  }
  template <typename T>
  T sum(T value) {
    all_reduce_sum(std::span<T>(&value, 1));
    return value;
  }

  // The parts of all ranks one after another, in the order of ranks. Parts may differ in size and be empty.
  template <typename T>
  std::vector<T> all_gather(std::span<const T> mine) {
    const Collective all_gather(*this, "all-gather", mine.size_bytes());
    const std::vector<std::int64_t> bytes = gather_sizes(static_cast<std::int64_t>(mine.size_bytes()));
    std::vector<T> all(sum_of(bytes) / sizeof(T));
    gather(mine.data(), bytes, all.data());
    return all;
  }

  // `send` holds send_counts[r] elements for each rank r, one after another. Gives what every rank sent to
  // this one, in the order of ranks; receive_counts gets the number of elements from each.
  template <typename T>
  std::vector<T> all_to_all(std::span<const T> send, std::span<const std::int64_t> send_counts,
                            std::vector<std::int64_t>* receive_counts = nullptr) {
    std::vector<std::int64_t> send_bytes;
    for (const std::int64_t count : send_counts)
      send_bytes.push_back(count * static_cast<std::int64_t>(sizeof(T)));
    require(static_cast<int>(send_bytes.size()) == size() && sum_of(send_bytes) == send.size_bytes(),
            "all_to_all: expected {} counts that add to {} elements, found {} counts", size(), send.size(),
            send_counts.size());
    const Collective all_to_all(*this, "all-to-all", send.size_bytes());
    const std::vector<std::int64_t> receive_bytes = exchange_sizes(send_bytes);
    std::vector<T> received(sum_of(receive_bytes) / sizeof(T));
    exchange(send.data(), send_bytes, received.data(), receive_bytes);
    if (receive_counts != nullptr) {
      receive_counts->clear();
      for (const std::int64_t b : receive_bytes)
        receive_counts->push_back(b / static_cast<std::int64_t>(sizeof(T)));
    }
    return received;
  }

  // `values` of rank `root` overwrite those of every rank.
  template <typename T>
  void broadcast(std::span<T> values, int root) {
    const Collective broadcast(*this, "broadcast", rank() == root ? values.size_bytes() : 0);
    send_from(root, values.data(), values.size_bytes());
  }

  // A rank of this group whose process has ended, where the connections to it say so; -1: none that is known.
  // Not a collective: any thread may call it at any time, beside collectives of the rank too.
  virtual int ended_rank() const { return -1; }

  // Returns when every rank has called it.
  void barrier() {
    const Collective barrier(*this, "barrier", 0);
    meet();
  }

 protected:
  // Sizes are in bytes but for reduce, which counts elements.
  virtual void reduce(void* values, std::size_t count, CommType type) = 0;
  virtual std::vector<std::int64_t> gather_sizes(std::int64_t mine) = 0;  // (size())
  virtual void gather(const void* mine, std::span<const std::int64_t> bytes, void* all) = 0;
  // From what this rank sends to each rank to what it receives from each.
  virtual std::vector<std::int64_t> exchange_sizes(std::span<const std::int64_t> send) = 0;
  virtual void exchange(const void* send, std::span<const std::int64_t> send_bytes, void* receive,
                        std::span<const std::int64_t> receive_bytes) = 0;
  virtual void send_from(int root, void* data, std::size_t bytes) = 0;
  virtual void meet() = 0;
  // Of split(): what other ranks have to know of this one to be in a group with it; then the group of the
  // ranks `members`, ascending, this one among them, by the offers of all ranks of this communicator.
  virtual std::int64_t offer() { return 0; }
  virtual std::unique_ptr<Communicator> join(std::span<const int> members,
                                             std::span<const std::int64_t> offers) = 0;

 private:
  // One collective, until the end of the scope.
  class Collective {
   public:
    Collective(Communicator& comm, std::string_view name, std::size_t bytes)
        : comm_(comm), trace_(comm.trace_) {
      require(comm.size() == 1 || !comm.busy_.exchange(true), "{} while another thread of the rank is in {}",
              name, comm.activity_.collective);
      comm.activity_.collective = name;
      ++comm.activity_.collectives;
      if (trace_ != nullptr) trace_->begin(name, static_cast<std::int64_t>(bytes));
    }
    ~Collective() {
      if (trace_ != nullptr) trace_->end();
      comm_.busy_ = false;
    }
    Collective(const Collective&) = delete;
    Collective& operator=(const Collective&) = delete;

   private:
    Communicator& comm_;
    CollectiveTrace* trace_;
  };

  static std::size_t sum_of(std::span<const std::int64_t> bytes) {
    return static_cast<std::size_t>(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
  }

  Patience patience_;
  Activity activity_;
  CollectiveTrace* trace_ = nullptr;
  std::vector<int> world_ranks_;  // (size()); empty before a split
  std::string group_text_;
  std::atomic<bool> busy_ = false;  // a collective is under way
};

// The group of one rank. Stateless: one object serves the whole process.
Communicator& one_rank();

}  // namespace hstu
