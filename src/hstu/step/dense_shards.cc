#include "hstu/step/dense_shards.h"

#include <algorithm>

#include "hstu/base/error.h"

namespace hstu {
namespace {

// The pieces of every rank, one after another: those of all parameters in their order.
template <typename Visit>
void for_all_pieces(const DenseOptimizer& optimizer, const Visit& visit) {
  const int ranks = optimizer.shard().ranks;
  for (int rank = 0; rank < ranks; ++rank)
    for (const ParameterBlock& piece : shard_of(optimizer.parameters(), {rank, ranks}))
      visit(rank, optimizer.parameters()[piece.parameter]->value, piece);
}

}  // namespace

void gather_values(const DenseOptimizer& optimizer, Communicator& comm, DeviceTransport* gpus) {
  if (optimizer.shard().ranks == 1) return;
  comm.enter("dense parameters");
  const int me = optimizer.shard().rank;
  if (gpus != nullptr) {
    std::vector<DeviceMessage> sends, receives;
    for_all_pieces(optimizer, [&](int rank, Tensor value, const ParameterBlock& piece) {
      DeviceMessage message{rank, reinterpret_cast<std::byte*>(value.mutable_data<float>() + piece.begin),
                            (piece.end - piece.begin) * static_cast<std::int64_t>(sizeof(float))};
      if (rank != me) return receives.push_back(message);
      for (message.rank = 0; message.rank < gpus->size(); ++message.rank)
        if (message.rank != me) sends.push_back(message);
    });
    return gpus->exchange(sends, receives, optimizer.context().stream);
  }
  std::vector<float> mine;
  for_all_pieces(optimizer, [&](int rank, const Tensor& value, const ParameterBlock& piece) {
    if (rank == me)
      mine.insert(mine.end(), value.data<float>() + piece.begin, value.data<float>() + piece.end);
  });
  const std::vector<float> all = comm.all_gather(std::span<const float>(mine));
  const float* at = all.data();
  for_all_pieces(optimizer, [&](int, Tensor value, const ParameterBlock& piece) {
    std::copy_n(at, piece.end - piece.begin, value.mutable_data<float>() + piece.begin);
    at += piece.end - piece.begin;
  });
}

std::vector<Tensor> gather_state(const DenseOptimizer& optimizer, Communicator& comm) {
  std::vector<Tensor> whole;
  if (optimizer.shard().ranks == 1) return whole;
  auto mine = optimizer.state().begin();
  for (const TensorSpec& spec : optimizer.whole_state()) {
    Tensor piece;
    if (mine != optimizer.state().end() && mine->name == spec.name)
      piece = (mine++)->tensor.to_host(optimizer.context().stream);
    const auto size = piece.defined() ? static_cast<std::size_t>(piece.size()) : 0;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 0);  // all of it to rank 0
    counts.front() = static_cast<std::int64_t>(size);
    const std::vector<float> values =
        comm.all_to_all(std::span<const float>(size > 0 ? piece.data<float>() : nullptr, size), counts);
    if (comm.rank() == 0) whole.push_back(Tensor::from(spec.shape, values));
  }
  return whole;
}

}  // namespace hstu
