// The memory that OpenBLAS takes for itself.
#pragma once

namespace hstu {

// OpenBLAS maps a buffer for each thread that multiplies, and repeats a refused request for ever. Throws
// Error unless the system grants this program (ulimit -v) the buffers of `threads` threads now.
void check_blas_memory(int threads);

}  // namespace hstu
