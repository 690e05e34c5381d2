#include "hstu/kernels/loops.h"

#include "hstu/base/error.h"

namespace hstu::kernels {

// loops/table.cc, once for each instruction set.
namespace baseline {
extern const Loops<float> float_loops;
extern const Loops<double> double_loops;
}  // namespace baseline
#ifdef HSTU_WITH_AVX512
namespace avx512 {
extern const Loops<float> float_loops;
extern const Loops<double> double_loops;
}  // namespace avx512
#endif

bool is_usable(InstructionSet set) {
  if (set == InstructionSet::baseline) return true;
#ifdef HSTU_WITH_AVX512
  // The compiler's answers include whether the system saves the registers.
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
#else
  return false;
#endif
}

namespace {

InstructionSet& set_in_use() {
  static InstructionSet set =
      is_usable(InstructionSet::avx512) ? InstructionSet::avx512 : InstructionSet::baseline;
  return set;
}

}  // namespace

InstructionSet instruction_set() {
  return set_in_use();
}

void use_instruction_set(InstructionSet set) {
  check(is_usable(set), "this processor or this program has no AVX-512: use the loops \"baseline\"");
  set_in_use() = set;
}

template <>
const Loops<float>& loops_of(InstructionSet set) {
#ifdef HSTU_WITH_AVX512
  if (set == InstructionSet::avx512) return avx512::float_loops;
#endif
  require(set == InstructionSet::baseline, "loops of an instruction set that is not usable");
  return baseline::float_loops;
}

template <>
const Loops<double>& loops_of(InstructionSet set) {
#ifdef HSTU_WITH_AVX512
  if (set == InstructionSet::avx512) return avx512::double_loops;
#endif
  require(set == InstructionSet::baseline, "loops of an instruction set that is not usable");
  return baseline::double_loops;
}

}  // namespace hstu::kernels
