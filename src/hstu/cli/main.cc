// Compiled for the oldest processor of the architecture, so that it can report a processor that is too old.
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "hstu/base/process.h"
#include "hstu/cli/program.h"

// Waiting threads first spin. libgomp's default of milliseconds is right on an otherwise idle machine; with
// any other load it makes a step ten times slower (docs/performance/cpu.md). libgomp reads the number before
// main() and has no call that sets it, so the program restarts itself with the variable.
static void wait_briefly(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv("GOMP_SPINCOUNT", "3000", 1);
  ::execv("/proc/self/exe", argv);  // if this fails, the default remains
}

int main(int argc, char** argv) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) {
    std::fputs(
        "hstu: this processor is too old: hstu requires AVX2, FMA and BMI2 (x86-64-v3, from about 2015 on)\n",
        stderr);
    return 1;
  }
#endif
  hstu::prepare_process();
  wait_briefly(argv);
  return hstu::finish_process(hstu::run_program(argc, argv));
}
