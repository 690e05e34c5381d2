#include "hstu/attention/hopper/forward.cuh"

namespace hstu::cuda {

template void launch_forward_sm90<__nv_bfloat16, 64, 1>(const DroppingForwardArguments&, int, cudaStream_t);
template void launch_forward_sm90<__half, 64, 1>(const DroppingForwardArguments&, int, cudaStream_t);

}  // namespace hstu::cuda
