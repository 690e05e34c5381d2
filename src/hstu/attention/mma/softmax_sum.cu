#include "hstu/attention/mma/softmax_sum.cuh"

namespace hstu::cuda {

template void launch_softmax_sum_mma<__nv_bfloat16, 64>(const SoftmaxMmaArguments&, std::int64_t,
                                                        cudaStream_t);
template void launch_softmax_sum_mma<__nv_bfloat16, 128>(const SoftmaxMmaArguments&, std::int64_t,
                                                         cudaStream_t);
template void launch_softmax_sum_mma<__half, 64>(const SoftmaxMmaArguments&, std::int64_t, cudaStream_t);
template void launch_softmax_sum_mma<__half, 128>(const SoftmaxMmaArguments&, std::int64_t, cudaStream_t);

}  // namespace hstu::cuda
