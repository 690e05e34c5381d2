#include "hstu/comm/message_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "hstu/comm/wait_watch.h"

namespace hstu {
namespace {

constexpr int kPollMilliseconds = 200;
// Sums of fewer bytes are formed on every rank, which takes one exchange instead of two.
constexpr std::size_t kSmallSum = std::size_t{1} << 15;

template <typename T>
void add(T* sums, const std::byte* terms, std::size_t count) {
  const T* const values = reinterpret_cast<const T*>(terms);
  for (std::size_t i = 0; i < count; ++i) sums[i] += values[i];
}

std::size_t size_of(CommType type) {
  return type == CommType::f32 || type == CommType::i32 ? 4 : 8;
}

void add(void* sums, const std::byte* terms, std::size_t count, CommType type) {
  if (type == CommType::f32) return add(static_cast<float*>(sums), terms, count);
  if (type == CommType::f64) return add(static_cast<double*>(sums), terms, count);
  if (type == CommType::i32) return add(static_cast<std::int32_t*>(sums), terms, count);
  add(static_cast<std::int64_t*>(sums), terms, count);
}

class MessageGroup final : public Communicator {
 public:
  explicit MessageGroup(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }

 protected:
  void reduce(void* values, std::size_t count, CommType type) override {
    const std::size_t bytes = size_of(type);
    if (count * bytes * ranks() <= kSmallSum) {
      std::vector<std::byte> all(ranks() * count * bytes);
      const std::vector<std::int64_t> sizes(ranks(), static_cast<std::int64_t>(count * bytes));
      gather(values, sizes, all.data());
      std::fill_n(static_cast<std::byte*>(values), count * bytes, std::byte{});
      for (std::size_t r = 0; r < ranks(); ++r) add(values, all.data() + r * count * bytes, count, type);
      return;
    }
    // Each rank adds one slice up, and sends the sums to all.
    const auto first = [&](std::size_t r) { return count * r / ranks(); };
    std::vector<std::int64_t> slices;
    for (std::size_t r = 0; r < ranks(); ++r)
      slices.push_back(static_cast<std::int64_t>((first(r + 1) - first(r)) * bytes));
    const std::size_t mine = first(me() + 1) - first(me());
    std::vector<std::byte> terms(ranks() * mine * bytes), sums(mine * bytes);
    exchange(values, slices, terms.data(),
             std::vector<std::int64_t>(ranks(), static_cast<std::int64_t>(mine * bytes)));
    for (std::size_t r = 0; r < ranks(); ++r) add(sums.data(), terms.data() + r * mine * bytes, mine, type);
    gather(sums.data(), slices, values);
  }

  std::vector<std::int64_t> gather_sizes(std::int64_t mine) override {
    std::vector<std::int64_t> sizes(ranks());
    gather(&mine, std::vector<std::int64_t>(ranks(), sizeof mine), sizes.data());
    return sizes;
  }

  void gather(const void* mine, std::span<const std::int64_t> bytes, void* all) override {
    auto* to = static_cast<std::byte*>(all);
    for (std::size_t r = 0; r < ranks(); ++r) {
      copy_or_receive(r, mine, to, bytes[r]);
      if (r != me()) transport_->send(static_cast<int>(r), mine, static_cast<std::size_t>(bytes[me()]));
      to += bytes[r];
    }
    wait();
  }

  std::vector<std::int64_t> exchange_sizes(std::span<const std::int64_t> send) override {
    std::vector<std::int64_t> received(ranks());
    const std::vector<std::int64_t> words(ranks(), sizeof(std::int64_t));
    exchange(send.data(), words, received.data(), words);
    return received;
  }

  void exchange(const void* send, std::span<const std::int64_t> send_bytes, void* receive,
                std::span<const std::int64_t> receive_bytes) override {
    const auto* from = static_cast<const std::byte*>(send);
    auto* to = static_cast<std::byte*>(receive);
    for (std::size_t r = 0; r < ranks(); ++r) {
      copy_or_receive(r, from, to, receive_bytes[r]);
      if (r != me()) transport_->send(static_cast<int>(r), from, static_cast<std::size_t>(send_bytes[r]));
      from += send_bytes[r];
      to += receive_bytes[r];
    }
    wait();
  }

  void send_from(int root, void* data, std::size_t bytes) override {
    for (int r = 0; r < size() && rank() == root; ++r)
      if (r != root) transport_->send(r, data, bytes);
    if (rank() != root) transport_->receive(root, data, bytes);
    wait();
  }

  void meet() override { gather_sizes(0); }
  int ended_rank() const override { return transport_->ended_rank(); }

  std::int64_t offer() override { return transport_->offer(); }
  std::unique_ptr<Communicator> join(std::span<const int> members,
                                     std::span<const std::int64_t> offers) override {
    return std::make_unique<MessageGroup>(transport_->part(members, offers));
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(size()); }
  std::size_t me() const { return static_cast<std::size_t>(rank()); }

  // The part of rank r: this rank's own is copied.
  void copy_or_receive(std::size_t r, const void* mine, std::byte* to, std::int64_t bytes) {
    const auto count = static_cast<std::size_t>(bytes);
    if (r != me())
      transport_->receive(static_cast<int>(r), to, count);
    else if (count > 0)
      std::memcpy(to, mine, count);
  }

  void wait() {
    WaitWatch watch(*this, activity());
    try {
      while (!transport_->progress(kPollMilliseconds))
        watch.check(transport_->bytes_moved(), [&] { return transport_->waiting_for(); });
    } catch (const PeerEnded& peer) {
      throw EndedRank(fmt::format("rank {}{}: rank {} has ended", world_rank(rank()), group_text(),
                                  world_rank(peer.rank)));
    }
  }

  std::unique_ptr<Transport> transport_;
};

}  // namespace

std::unique_ptr<Communicator> message_group(std::unique_ptr<Transport> transport, Patience patience) {
  auto group = std::make_unique<MessageGroup>(std::move(transport));
  group->set_patience(patience);
  return group;
}

}  // namespace hstu
