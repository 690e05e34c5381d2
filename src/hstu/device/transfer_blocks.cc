#include "hstu/device/transfer_blocks.h"

#include "hstu/base/error.h"
#include "hstu/device/pinned_memory.h"

namespace hstu {

TransferBlocks::TransferBlocks(const Stream& stream, std::size_t blocks) : stream_(stream) {
  for (std::size_t b = 0; b < blocks; ++b) blocks_.push_back({.passed = Event(stream.device())});
}

TransferBlocks::~TransferBlocks() {
  for (Block& block : blocks_) {
    try {
      block.passed.synchronize();
    } catch (const Error&) {  // the device has failed, and runs nothing any more
    }
    free(block);
  }
}

void TransferBlocks::free(Block& block) const {
  if (block.data == nullptr) return;
  transfer_memory(stream_.device())->deallocate(block.data, static_cast<std::size_t>(block.bytes));
  block.data = nullptr;
}

std::byte* TransferBlocks::next(std::int64_t bytes) {
  turn_ = (turn_ + 1) % blocks_.size();
  Block& block = blocks_[turn_];
  block.passed.synchronize();
  if (block.data == nullptr || block.bytes < bytes) {
    free(block);
    block.bytes =
        bytes + bytes / 4 + 4096;  // sizes of steps differ a little, and page-locked memory is slow to get
    block.data = static_cast<std::byte*>(
        transfer_memory(stream_.device())->allocate(static_cast<std::size_t>(block.bytes)));
  }
  return block.data;
}

const Event& TransferBlocks::in_use() {
  blocks_[turn_].passed.record(stream_);
  return blocks_[turn_].passed;
}

}  // namespace hstu
