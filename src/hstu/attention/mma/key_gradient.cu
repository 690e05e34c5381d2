#include "hstu/attention/mma/key_gradient.cuh"

namespace hstu::cuda {

template void launch_key_gradient_mma<__nv_bfloat16, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_key_gradient_mma<__nv_bfloat16, 128>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_key_gradient_mma<__half, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_key_gradient_mma<__half, 128>(const MmaArguments&, std::int64_t, cudaStream_t);

}  // namespace hstu::cuda
