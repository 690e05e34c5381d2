#include "hstu/attention/hopper/backward_256.cuh"

namespace hstu::cuda {

template <typename T>
void launch_backward_sm90_256(const BackwardArguments& arguments, int multiprocessors, cudaStream_t stream) {
  launch_early(backward_sm90_256_kernel<T>, arguments, multiprocessors, 2, Tile256::kThreads,
               Tile256::kSharedBytes, stream, "attention backward");
}

template void launch_backward_sm90_256<__nv_bfloat16>(const BackwardArguments&, int, cudaStream_t);
template void launch_backward_sm90_256<__half>(const BackwardArguments&, int, cudaStream_t);

}  // namespace hstu::cuda
