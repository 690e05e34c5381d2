// Buffers of finished tensors, kept for the next step: a training step asks for the same sizes again and
// again, and fresh pages cost a quarter of a large CPU step (the kernel zeroes them).
#pragma once

#include <cstddef>

namespace hstu {

// At least `bytes` bytes aligned to 64; `capacity` receives the size to give back.
std::byte* acquire_buffer(std::size_t bytes, std::size_t* capacity);
void release_buffer(std::byte* data, std::size_t capacity);

}  // namespace hstu
