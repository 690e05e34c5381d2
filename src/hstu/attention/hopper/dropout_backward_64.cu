#include "hstu/attention/hopper/backward.cuh"

namespace hstu::cuda {

template void launch_backward_sm90<__nv_bfloat16, 64>(const DroppingBackwardArguments&, int, cudaStream_t);
template void launch_backward_sm90<__half, 64>(const DroppingBackwardArguments&, int, cudaStream_t);

}  // namespace hstu::cuda
