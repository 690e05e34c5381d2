// Compiled for the oldest processor of the architecture: it must be able to say that a processor is too old.
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "hstu/cli/program.h"

// Threads that wait for each other spin at first. libgomp's default, milliseconds, is right on a machine of
// one's own; beside any other load it makes a step ten times slower (docs/performance/cpu.md). libgomp reads
// the number before main() and has no other way to set it, so the program starts itself once more with it.
static void wait_briefly(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv("GOMP_SPINCOUNT", "1000", 1);
  ::execv("/proc/self/exe", argv);  // where that fails, the default will do
}

int main(int argc, char** argv) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) {
    std::fputs(
        "hstu: this processor is too old: AVX2, FMA and BMI2 are needed (x86-64-v3, about 2015 and later)\n",
        stderr);
    return 1;
  }
#endif
  wait_briefly(argv);
  return hstu::run_program(argc, argv);
}
