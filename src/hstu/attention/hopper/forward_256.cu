#include "hstu/attention/hopper/forward.cuh"

namespace hstu::cuda {

template void launch_forward_sm90<__nv_bfloat16, 256, 1>(const ForwardArguments&, int, cudaStream_t);
template void launch_forward_sm90<__half, 256, 1>(const ForwardArguments&, int, cudaStream_t);
template void launch_forward_sm90<__nv_bfloat16, 256, 2>(const ForwardArguments&, int, cudaStream_t);
template void launch_forward_sm90<__half, 256, 2>(const ForwardArguments&, int, cudaStream_t);

}  // namespace hstu::cuda
