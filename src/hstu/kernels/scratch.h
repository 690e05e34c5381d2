// Memory of one thread, for the time of a function: not initialised, aligned to 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hstu::kernels {

// What fits comes from a stack of the thread, because kernels of small models would wait for malloc
// otherwise. The memory is freed in the reverse order of its allocation, by the thread that allocated it.
class ScratchBytes {
 public:
  explicit ScratchBytes(std::int64_t bytes);
  ~ScratchBytes();
  ScratchBytes(const ScratchBytes&) = delete;
  ScratchBytes& operator=(const ScratchBytes&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  std::int64_t on_stack_;  // bytes; 0: from the heap
};

template <typename T>
class Scratch {
 public:
  explicit Scratch(std::int64_t count) : bytes_(count * static_cast<std::int64_t>(sizeof(T))) {}
  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }

 private:
  ScratchBytes bytes_;
};

}  // namespace hstu::kernels
