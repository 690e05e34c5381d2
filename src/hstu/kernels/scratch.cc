#include "hstu/kernels/scratch.h"

#include <memory>
#include <new>

#include "hstu/device/host_memory_pool.h"

namespace hstu::kernels {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kStack = std::int64_t{512} << 10;

std::byte* allocate(std::int64_t bytes) {
  return static_cast<std::byte*>(
      ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kAlignment}));
}

struct Free {
  void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{kAlignment}); }
};

struct Stack {
  std::unique_ptr<std::byte, Free> data;
  std::int64_t used = 0;
};
thread_local Stack stack;

}  // namespace

// Every use has an allocation of its own under AddressSanitizer, which sees then what it reads beside it.
ScratchBytes::ScratchBytes(std::int64_t bytes)
    : on_stack_((bytes + kAlignment - 1) / kAlignment * kAlignment) {
  if (kAddressSanitizer || on_stack_ > kStack - stack.used) on_stack_ = 0;
  if (on_stack_ == 0) {
    data_ = allocate(bytes);
    return;
  }
  if (stack.data == nullptr) stack.data.reset(allocate(kStack));
  data_ = stack.data.get() + stack.used;
  stack.used += on_stack_;
}

ScratchBytes::~ScratchBytes() {
  if (on_stack_ == 0)
    Free{}(data_);
  else
    stack.used -= on_stack_;
}

}  // namespace hstu::kernels
