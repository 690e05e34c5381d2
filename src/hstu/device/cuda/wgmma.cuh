// wgmma: D (64 x N, fp32, in the registers of a warpgroup) = A (64 x 16) B (16 x N) [+ D]. A is in shared
// memory (ss) or registers (rs), B in shared memory. ss_first and rs_first do not read D, so that its
// registers are free before.
//
// Tiles in shared memory are columns of 64 elements (128 bytes a row) in the 128-byte swizzle, as the tensor
// copy engine writes them. An operand is transposed (kA or kB = 1) if its contiguous direction is not the one
// summed over.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hstu/device/cuda/ptx.cuh"

namespace hstu::cuda {

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Each use makes its descriptor from the low word. Otherwise the compiler keeps dozens of 64-bit constants in
// registers across the loop; the base passes through `opaque` for the same reason. In a cluster the addresses
// of a block have its rank in the high bits, which descriptors must not have.

// The summed direction is contiguous. One step of 16 elements is 32 bytes, + 2 in this word.
__device__ __forceinline__ std::uint32_t contiguous_k(std::uint32_t address) {
  return opaque(((address & 0x3FFFF) >> 4) | (1u << 16));
}
// The other direction is contiguous; its next 64 elements are `stride` bytes on. One step of 16 rows is 2048
// bytes,
// + 128.
__device__ __forceinline__ std::uint32_t contiguous_mn(std::uint32_t address, std::uint32_t stride) {
  return opaque(((address & 0x3FFFF) >> 4) | ((stride >> 4) << 16));
}
__device__ __forceinline__ std::uint64_t descriptor(std::uint32_t low) {
  std::uint64_t result;
  asm("mov.b64 %0, {%1, %2};" : "=l"(result) : "r"(low), "n"((1024 >> 4) | (1 << 30)));
  return result;
}

template <typename T, int N>
struct Wgmma;

// clang-format off
#define HSTU_D8(c, i)                                                                                          \
  c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define HSTU_D16(c, i) HSTU_D8(c, i), HSTU_D8(c, i + 8)
#define HSTU_D32(c, i) HSTU_D16(c, i), HSTU_D16(c, i + 16)
#define HSTU_D64(c, i) HSTU_D32(c, i), HSTU_D32(c, i + 32)
#define HSTU_D128(c, i) HSTU_D64(c, i), HSTU_D64(c, i + 64)
#define HSTU_ADDED(x) "+f"(x)
#define HSTU_WRITTEN(x) "=f"(x)

// The operands after the N / 2 accumulators are numbered from p0 = N / 2.
#define HSTU_WGMMA(TYPE, NAME, N, OUTPUTS, LIST, p0, p1, p2, p3, p4, p5, p6)                                      \
  template <>                                                                                                     \
  struct Wgmma<TYPE, N> {                                                                                         \
    template <int kA, int kB>                                                                                     \
    static __device__ __forceinline__ void ss(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, int add) {     \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N          \
                   "k16.f32." NAME "." NAME " {" LIST "}, %" #p0 ", %" #p1 ", p, 1, 1, %" #p3 ", %" #p4 ";\n}\n"  \
                   : OUTPUTS(HSTU_ADDED, 0)                                                                       \
                   : "l"(a), "l"(b), "r"(add), "n"(kA), "n"(kB));                                                 \
    }                                                                                                             \
    template <int kA, int kB>                                                                                     \
    static __device__ __forceinline__ void ss_first(float (&d)[N / 2], std::uint64_t a, std::uint64_t b) {        \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n" #N                 \
                   "k16.f32." NAME "." NAME " {" LIST "}, %" #p0 ", %" #p1 ", p, 1, 1, %" #p2 ", %" #p3 ";\n}\n"  \
                   : OUTPUTS(HSTU_WRITTEN, 0)                                                                     \
                   : "l"(a), "l"(b), "n"(kA), "n"(kB));                                                           \
    }                                                                                                             \
    template <int kB>                                                                                             \
    static __device__ __forceinline__ void rs(float (&d)[N / 2], const std::uint32_t* a, std::uint64_t b,         \
                                              int add) {                                                          \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p5 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N          \
                   "k16.f32." NAME "." NAME " {" LIST "}, {%" #p0 ", %" #p1 ", %" #p2 ", %" #p3 "}, %" #p4        \
                   ", p, 1, 1, %" #p6 ";\n}\n"                                                                    \
                   : OUTPUTS(HSTU_ADDED, 0)                                                                       \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(kB));                      \
    }                                                                                                             \
  };

#define HSTU_LIST16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define HSTU_LIST32 \
  HSTU_LIST16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HSTU_LIST64                                                                                 \
  HSTU_LIST32                                                                                       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50" \
  ", %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define HSTU_LIST128                                                                                  \
  HSTU_LIST64                                                                                         \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82"   \
  ", %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101" \
  ", %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117"  \
  ", %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define HSTU_WGMMA_OF(TYPE, NAME)                                                    \
  HSTU_WGMMA(TYPE, NAME, 32, HSTU_D16, HSTU_LIST16, 16, 17, 18, 19, 20, 21, 22)      \
  HSTU_WGMMA(TYPE, NAME, 64, HSTU_D32, HSTU_LIST32, 32, 33, 34, 35, 36, 37, 38)      \
  HSTU_WGMMA(TYPE, NAME, 128, HSTU_D64, HSTU_LIST64, 64, 65, 66, 67, 68, 69, 70)     \
  HSTU_WGMMA(TYPE, NAME, 256, HSTU_D128, HSTU_LIST128, 128, 129, 130, 131, 132, 133, 134)
HSTU_WGMMA_OF(__nv_bfloat16, "bf16")
HSTU_WGMMA_OF(__half, "f16")
// clang-format on

#undef HSTU_WGMMA_OF
#undef HSTU_WGMMA
#undef HSTU_LIST16
#undef HSTU_LIST32
#undef HSTU_LIST64
#undef HSTU_LIST128
#undef HSTU_D8
#undef HSTU_D16
#undef HSTU_D32
#undef HSTU_D64
#undef HSTU_D128
#undef HSTU_ADDED
#undef HSTU_WRITTEN

}  // namespace hstu::cuda
