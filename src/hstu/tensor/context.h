// Context: where a pass puts its work and takes its memory. One object that is passed on, not a global.
#pragma once

#include <memory>
#include <string_view>

#include "hstu/device/memory_pool.h"
#include "hstu/device/stream.h"

namespace hstu {

// Is told of the work that operations put on the stream; ranges nest. For profilers.
class Trace {
 public:
  virtual ~Trace() = default;
  virtual void begin(std::string_view operation) = 0;
  virtual void end() = 0;
};

struct Context {
  Stream stream;
  std::shared_ptr<MemoryPool> memory = MemoryPool::host();  // of the same stream
  Trace* trace = nullptr;

  Device device() const { return stream.device(); }
  CudaStream cuda() const { return {stream.cuda(), memory.get()}; }  // of a GPU alone
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

}  // namespace hstu
