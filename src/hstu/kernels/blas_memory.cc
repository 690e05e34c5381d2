#include "hstu/kernels/blas_memory.h"

#include <cstddef>

#include <sys/mman.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{128}
                                     << 20;  // BUFFER_SIZE of OpenBLAS for x86-64, and as much elsewhere
constexpr std::size_t kStackBytes = std::size_t{8} << 20;  // of a thread

}  // namespace

void check_blas_memory(int threads) {
  const std::size_t bytes = static_cast<std::size_t>(threads) * (kBufferBytes + kStackBytes);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fail(
        "{} threads need {} of addresses for matrix products, and the system grants less: raise the limit "
        "(ulimit -v) "
        "or use fewer --threads",
        threads, human_bytes(static_cast<double>(bytes)));
  }
  ::munmap(memory, bytes);
}

}  // namespace hstu
