#include "hstu/device/memory_pool.h"

#include "hstu/device/cuda_calls.h"
#include "hstu/device/host_memory_pool.h"

namespace hstu {

Buffer::~Buffer() {
  if (data_ != nullptr) pool_->release({data_, capacity_}, bytes_);
}

std::shared_ptr<MemoryPool> MemoryPool::create(const Stream& stream, std::int64_t limit) {
  require(limit >= 0, "expected a limit >= 0, found {}", limit);
  if (stream.device().is_host()) return std::make_shared<HostMemoryPool>(limit);
  return cuda::new_pool(stream, limit);
}

const std::shared_ptr<MemoryPool>& MemoryPool::host() {
  // Never destroyed: tensors of static lifetime may end after any other static object.
  static const auto* const pool = new std::shared_ptr<MemoryPool>(create(Stream()));
  return *pool;
}

Buffer MemoryPool::allocate(std::int64_t bytes) {
  require(bytes >= 0, "expected a number of bytes >= 0, found {}", bytes);
  const Block block = acquire(bytes);
  Buffer buffer;
  buffer.pool_ = shared_from_this();
  buffer.data_ = block.data;
  buffer.bytes_ = bytes;
  buffer.capacity_ = block.capacity;
  return buffer;
}

void MemoryPool::refuse(std::int64_t asked, std::int64_t in_use, const char* why) const {
  throw OutOfMemory(fmt::format(
      "{}: no memory for {} bytes: {} bytes are in use, {}. Make batches smaller (fewer samples or tokens) "
      "or the model narrower{}",
      to_string(device()), asked, in_use,
      limit_ > 0 ? fmt::format("the limit is {} bytes", limit_) : std::string(why),
      limit_ > 0 ? ", or raise the limit" : ""));
}

}  // namespace hstu
