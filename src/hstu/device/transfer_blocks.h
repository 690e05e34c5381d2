// TransferBlocks: host memory for copies to and from a device, which is used again when the stream of the
// copies has passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hstu/device/stream.h"

namespace hstu {

class TransferBlocks {
 public:
  // Blocks take turns: the memory of one is given out again at the `blocks`-th call of next() after it.
  explicit TransferBlocks(const Stream& stream, std::size_t blocks = 3);
  ~TransferBlocks();
  TransferBlocks(const TransferBlocks&) = delete;
  TransferBlocks& operator=(const TransferBlocks&) = delete;

  // Uninitialised memory (transfer_memory()) of `bytes`, when the copies that used it before are done.
  std::byte* next(std::int64_t bytes);
  template <typename T>
  T* next(std::int64_t elements) {
    return reinterpret_cast<T*>(next(elements * static_cast<std::int64_t>(sizeof(T))));
  }
  // What the stream holds now uses the memory of the last next(). Reached: it does no longer.
  const Event& in_use();

 private:
  struct Block {
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    Event passed;
  };
  void free(Block& block) const;

  Stream stream_;
  std::vector<Block> blocks_;
  std::size_t turn_ = 0;
};

}  // namespace hstu
