#include "hstu/attention/attention.h"

#include "hstu/attention/attention_cpu.h"
#include "hstu/attention/attention_cuda.h"

namespace hstu {

void attention_forward(const AttentionProblem& p, const AttentionDevice& device, const AttentionRows& o,
                       const AttentionScratch& scratch, CUstream_st* stream) {
  if (choose_attention(p, device).forward == AttentionKernel::cpu)
    cpu::attention_forward(p, o);
  else
    cuda::attention_forward(p, device, o, scratch, stream);
}

void attention_backward(const AttentionProblem& p, const AttentionDevice& device, const AttentionGradients& g,
                        const AttentionScratch& scratch, CUstream_st* stream) {
  if (choose_attention(p, device).backward == AttentionKernel::cpu)
    cpu::attention_backward(p, g);
  else
    cuda::attention_backward(p, device, g, scratch, stream);
}

}  // namespace hstu
