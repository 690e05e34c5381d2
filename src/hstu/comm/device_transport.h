// DeviceTransport: messages between the GPUs of a group of ranks, one GPU a rank. They are work on a stream,
// like kernels: nothing here waits for the GPU, except where messages go through the host's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/device/stream.h"

namespace hstu {

struct DeviceMessage {
  int rank = 0;               // where it goes to, or comes from
  std::byte* data = nullptr;  // in the memory of this rank's GPU
  std::int64_t bytes = 0;
};

// Is told of the exchanges of a rank, for profiles.
class ExchangeTrace {
 public:
  virtual ~ExchangeTrace() = default;
  // Before and after the work of an exchange is put on `stream`. `bytes`: what this rank sends to others.
  virtual void begin(const Stream& stream, std::int64_t bytes) = 0;
  virtual void end(const Stream& stream) = 0;
};

class DeviceTransport {
 public:
  virtual ~DeviceTransport() = default;

  virtual int rank() const = 0;  // 0 .. size() - 1
  virtual int size() const = 0;
  virtual std::string name() const = 0;  // for people: "NCCL 2.27.3"

  // Sends and receives all of these. All ranks call it together and in the same order; calls on different
  // streams take place one after another too. The messages of one rank to another arrive in the order of
  // `sends`, and each must be received with its size. Memory that is received into must not be sent.
  void exchange(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
                const Stream& stream);

  std::int64_t begun() const { return begun_; }  // exchanges with other ranks so far
  // Returns when the first so many are done. Throws LostRank, and ends them, when another rank does not take
  // part for too long (Patience of its communicator). The host calls it before it reads what depends on them:
  // CUDA itself would wait for ever.
  virtual void wait(std::int64_t /*exchanges*/) {}

  // For `group`, which was split from all ranks, this transport's. Both must outlive the result, whose
  // exchanges all ranks of the group put into the same order with those of this transport.
  virtual std::unique_ptr<DeviceTransport> part(Communicator& group) = 0;

  // For exchanges beside the work of another stream of `device`, this rank's. Made when it is first asked
  // for.
  const Stream& beside(Device device);

  // Is told of the following exchanges; null: nobody.
  void set_trace(ExchangeTrace* trace) { trace_ = trace; }

 protected:
  // The messages to and from other ranks, none of them empty.
  virtual void move(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
                    const Stream& stream) = 0;
  // move() is a collective: ranks without messages take part too.
  virtual bool moves_together() const { return false; }

 private:
  ExchangeTrace* trace_ = nullptr;
  std::int64_t begun_ = 0;
  std::optional<Stream> beside_;
};

// Through NCCL, which is loaded when it is first needed: libnccl.so.2 from the places where the system looks
// for libraries. UsageError naming what is missing. All ranks of `comm`, which must outlive it, call it
// together; `device` is this rank's alone.
std::unique_ptr<DeviceTransport> nccl_transport(Communicator& comm, Device device);

// Through the host's memory and `comm`, which must outlive it: slow, and the specification of the other one.
std::unique_ptr<DeviceTransport> staged_transport(Communicator& comm);

// DeviceTransport::part() as messages of `all` itself, whose exchanges may have any ranks.
std::unique_ptr<DeviceTransport> view_of(DeviceTransport& all, const Communicator& group);

// values (n) on the device of `memory` become their sums over all ranks, added in the order of ranks: every
// rank gets the same bits, on every run and through every transport. Takes scratch memory of n values from
// `memory`. T: float, double or std::int32_t.
template <typename T>
void all_reduce_sum(T* values, std::int64_t n, DeviceTransport& ranks, MemoryPool& memory);

}  // namespace hstu
