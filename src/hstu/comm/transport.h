// Transport: messages between the processes of a group, which the collectives are made of (message_group.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hstu/base/error.h"

namespace hstu {

// A rank cannot go on because another one does not answer.
class LostRank : public Error {
 public:
  using Error::Error;
};
// Because another one has ended, whose own message, or the launcher's, says why.
class EndedRank : public LostRank {
 public:
  using LostRank::LostRank;
};

// The rank `rank` of a transport has ended. MessageGroup names it.
struct PeerEnded {
  int rank;
};

// Messages from one rank to another arrive in the order of their sends, and each must be received with its
// size. Memory given to send() and receive() belongs to the transport until progress() returns true. One
// thread uses a transport.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;  // 0 .. size() - 1
  virtual int size() const = 0;

  // Begin a message of any size to or from another rank.
  virtual void send(int to, const void* data, std::size_t bytes) = 0;
  virtual void receive(int from, void* data, std::size_t bytes) = 0;
  // Moves what can be moved, and waits at most `milliseconds` for it. True when no message is left. Throws
  // PeerEnded if a rank that takes part has ended.
  virtual bool progress(int milliseconds) = 0;
  virtual std::uint64_t bytes_moved() const = 0;  // so far: a measure of progress
  // The ranks that have not yet sent, or not yet taken, their part of the messages begun.
  virtual std::vector<int> waiting_for() const = 0;

  // A rank whose process has ended, as far as its connection says; -1: none. Any thread may call it.
  virtual int ended_rank() const { return -1; }

  // Of Communicator::split(): a transport for some of these ranks, whose messages do not meet those of
  // others, so that another thread may use it at the same time. All ranks call offer() and learn the answers
  // of all; then the ranks `members`, ascending, call part() together.
  virtual std::int64_t offer() = 0;
  virtual std::unique_ptr<Transport> part(std::span<const int> members,
                                          std::span<const std::int64_t> offers) = 0;
};

}  // namespace hstu
