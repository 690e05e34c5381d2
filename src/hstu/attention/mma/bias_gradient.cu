#include "hstu/attention/mma/gradient.cuh"

namespace hstu::cuda {

template void launch_gradient_mma<__nv_bfloat16, 64>(const BiasedMmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__nv_bfloat16, 128>(const BiasedMmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__nv_bfloat16, 256>(const BiasedMmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__half, 64>(const BiasedMmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__half, 128>(const BiasedMmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__half, 256>(const BiasedMmaArguments&, std::int64_t, cudaStream_t);

}  // namespace hstu::cuda
