// Memory for tensors, kept when a tensor ends and handed out again: a training step asks for the same sizes
// again and again. One pool serves one device and one stream of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/device/stream.h"

namespace hstu {

class DryMemoryPool;
class MemoryPool;

// There is no room for a buffer: the limit of the pool or the device's memory is reached. The message gives
// the bytes asked for, in use and allowed.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

// Bytes of a pool, given back to it at the end of this object. On a GPU that is in stream order: work that
// the pool's stream already holds may still use them, later work may get them.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer();
  Buffer(Buffer&& other) noexcept
      : pool_(std::move(other.pool_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_),
        capacity_(other.capacity_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  std::byte* data() const { return data_; }  // aligned to 64 bytes; not null, even for 0 bytes
  std::int64_t bytes() const { return bytes_; }

 private:
  friend class MemoryPool;
  std::shared_ptr<MemoryPool> pool_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;     // asked for
  std::int64_t capacity_ = 0;  // the pool's own note
};

struct MemoryFigures {
  std::int64_t in_use = 0;    // bytes handed out (at least 256 a buffer)
  std::int64_t peak = 0;      // the most that `in_use` has been
  std::int64_t reserved = 0;  // bytes that the pool holds, handed out or not
};

// Thread-safe. Buffers keep their pool alive.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  // A pool for `stream`. `limit` (bytes, 0: none) bounds what a host pool holds and what a GPU's hands out.
  static std::shared_ptr<MemoryPool> create(const Stream& stream, std::int64_t limit = 0);
  // The host pool of all who name no other. It has no limit and is never destroyed.
  static const std::shared_ptr<MemoryPool>& host();

  virtual ~MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Uninitialised bytes. Throws OutOfMemory.
  Buffer allocate(std::int64_t bytes);
  // Gives back all that is not in use to the device or the system.
  virtual void trim() = 0;
  virtual MemoryFigures figures() const = 0;
  // The pool of a dry run; null for all others.
  virtual DryMemoryPool* dry() { return nullptr; }
  const Stream& stream() const { return stream_; }
  Device device() const { return stream_.device(); }

 protected:
  MemoryPool(Stream stream, std::int64_t limit) : stream_(std::move(stream)), limit_(limit) {}

  struct Block {
    std::byte* data;
    std::int64_t capacity;
  };
  friend class Buffer;
  virtual Block acquire(std::int64_t bytes) = 0;
  virtual void release(Block block, std::int64_t bytes) noexcept = 0;

  std::int64_t limit() const { return limit_; }
  [[noreturn]] void refuse(std::int64_t asked, std::int64_t in_use, const char* why) const;

 private:
  Stream stream_;
  std::int64_t limit_;
};

}  // namespace hstu
