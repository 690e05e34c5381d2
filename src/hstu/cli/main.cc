// Compiled for the oldest processor of the architecture: it must be able to say that a processor is too old.
#include <cstdio>

#include "hstu/cli/program.h"

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
  return hstu::run_program(argc, argv);
}
