// Context: where a pass puts its work and takes its memory. One object that is passed on, not a global.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "hstu/device/memory_pool.h"
#include "hstu/device/stream.h"

namespace hstu {

// Is told of the work that is put on the stream, in ranges that nest: a pass ("forward"), a stage of the
// model
// ("attention", tape.h), an operation ("linear"). For profilers (stage_timer.h).
class Trace {
 public:
  virtual ~Trace() = default;
  // `name` is a literal.
  virtual void begin(std::string_view name) = 0;
  virtual void end() = 0;
  // The operands of an operation inside the current range: what it reads and writes if it touches each once.
  virtual void touches_bytes(std::int64_t /*bytes*/) {}
  // The work of the operation of the current range: its sizes, in an order of its own, and its FLOPs; 0: not
  // known here.
  virtual void works_on(std::initializer_list<std::int64_t> /*sizes*/, std::int64_t /*flops*/) {}
};

struct Groups;                     // hstu/comm/groups.h
enum class AttentionChoice : int;  // hstu/attention/problem.h

struct Context {
  Stream stream;
  std::shared_ptr<MemoryPool> memory = MemoryPool::host();  // of the same stream
  Trace* trace = nullptr;
  // The same work gives the same bits every time. False: sums of attention's backward pass may have any
  // order.
  bool deterministic = true;
  // The forward pass gives a row of a batch the same bits beside any other rows. Always true of the host; on
  // GPUs it is slower.
  bool row_stable = false;
  AttentionChoice attention{};     // the kernels that attention asks for; 0: it chooses
  const Groups* groups = nullptr;  // of ranks, for operations that exchange; null: none

  Device device() const { return stream.device(); }
  CudaStream cuda() const { return {stream.cuda_for_launches(), memory.get()}; }  // of a GPU alone
};

// A range of the context's trace.
class TraceRange {
 public:
  TraceRange(const Context& context, std::string_view name) : trace_(context.trace) {
    if (trace_ != nullptr) trace_->begin(name);
  }
  ~TraceRange() {
    if (trace_ != nullptr) trace_->end();
  }
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;

 private:
  Trace* trace_;
};

// The host: what is used where no context is named.
inline const Context& host_context() {
  static const auto* const context = new Context;  // never destroyed, like its pool
  return *context;
}

// A context of `device` with a stream and a pool of its own (limit in bytes, 0: none).
inline Context make_context(Device device, std::int64_t memory_limit = 0) {
  const Stream stream(device);
  return {stream, MemoryPool::create(stream, memory_limit)};
}

// The same on a GPU; the host has one for all.
inline Context own_context(Device device, std::int64_t memory_limit = 0) {
  return device.is_host() ? host_context() : make_context(device, memory_limit);
}

}  // namespace hstu
