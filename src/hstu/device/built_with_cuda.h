// Whether this build has kernels for GPUs. In a header of its own: what does not ask is compiled once for
// both builds, where the compiler's cache is shared.
#pragma once

namespace hstu {

#ifdef HSTU_WITH_CUDA
inline constexpr bool kBuiltWithCuda = true;
#else
inline constexpr bool kBuiltWithCuda = false;
#endif

}  // namespace hstu
