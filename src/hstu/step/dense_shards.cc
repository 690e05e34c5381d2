#include "hstu/step/dense_shards.h"

#include <algorithm>
#include <span>

#include "hstu/base/error.h"
#include "hstu/comm/groups.h"

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

// What all ranks have, on rank 0, in the order of ranks. `counts` gets how many come from each.
template <typename T>
std::vector<T> gather_on_first(std::span<const T> mine, Communicator& comm,
                               std::vector<std::int64_t>* counts = nullptr) {
  std::vector<std::int64_t> sent(static_cast<std::size_t>(comm.size()), 0);
  sent.front() = std::ssize(mine);
  return comm.all_to_all(mine, sent, counts);
}

// The whole of which `part`, in host memory, is this rank's, on rank 0 of the tensor group; elsewhere
// undefined.
Tensor gather_whole(const Tensor& part, const AxisDivision& division, Communicator& tensor) {
  std::vector<std::int64_t> ranges, counts;
  for (const auto& [begin, end] : division.ranges) ranges.insert(ranges.end(), {begin, end});
  const std::vector<std::int64_t> all_ranges =
      gather_on_first(std::span<const std::int64_t>(ranges), tensor, &counts);
  Tensor whole;
  with_float_type(part.dtype(), [&]<typename T>() {
    const std::vector<T> parts =
        gather_on_first(std::span(part.data<T>(), static_cast<std::size_t>(part.size())), tensor);
    if (tensor.rank() != 0) return;
    whole = Tensor::zeros(division.whole, part.dtype());
    require(std::ssize(parts) == whole.size(), "the parts of a tensor {} have {} elements",
            ShapeText{division.whole}, parts.size());
    const T* from = parts.data();
    auto range = all_ranges.begin();
    for (const std::int64_t count : counts) {
      AxisDivision of_rank{.whole = division.whole, .axis = division.axis};
      for (const auto end = range + count; range != end; range += 2)
        of_rank.ranges.push_back({range[0], range[1]});
      for_each_run(of_rank, [&](std::int64_t, std::int64_t in_whole, std::int64_t n) {
        std::copy_n(from, n, whole.mutable_data<T>() + in_whole);
        from += n;
      });
    }
  });
  return whole;
}

// The state of all shards on rank 0 of the replicas, and of the only one everywhere.
std::vector<Tensor> gather_shards(const DenseOptimizer& optimizer, Communicator& replicas) {
  std::vector<Tensor> all;
  auto mine = optimizer.state().begin();
  for (const TensorSpec& spec : optimizer.whole_state()) {
    Tensor piece;
    if (mine != optimizer.state().end() && mine->name == spec.name)
      piece = (mine++)->tensor.to_host(optimizer.context().stream);
    const auto size = piece.defined() ? static_cast<std::size_t>(piece.size()) : 0;
    const std::span<const float> values(size > 0 ? piece.data<float>() : nullptr, size);
    const std::vector<float> gathered = optimizer.shard().ranks == 1
                                            ? std::vector<float>(values.begin(), values.end())
                                            : gather_on_first(values, replicas);
    if (replicas.rank() == 0) all.push_back(Tensor::from({std::ssize(gathered)}, gathered));
  }
  return all;
}

}  // namespace

void gather_values(const DenseOptimizer& optimizer, Communicator& world, DeviceTransport* world_gpus) {
  if (optimizer.shard().ranks == 1) return;
  const Group replicas = replicas_of(optimizer.context().groups, {world, world_gpus});
  Communicator& comm = replicas.host;
  DeviceTransport* const gpus = replicas.device;
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

DenseState gather_state(const DenseOptimizer& optimizer, Communicator& world) {
  DenseState state;
  const Groups* const groups = optimizer.context().groups;
  const NamedTensors& parameters = optimizer.parameters();
  const bool any_divided = std::any_of(parameters.begin(), parameters.end(),
                                       [](const Parameter* p) { return p->division.is_divided(); });
  if (optimizer.shard().ranks == 1 && !any_divided) return state;
  Communicator& replicas = replicas_of(groups, {world}).host;
  std::vector<Tensor> shards = gather_shards(optimizer, replicas);
  if (replicas.rank() != 0) return state;

  const auto whole = [&](Tensor part, const Parameter& parameter) {
    part = part.reshaped(parameter.value.shape());
    return parameter.division.is_divided() ? gather_whole(part, parameter.division, groups->tensor.host)
                                           : part;
  };
  const std::size_t kinds = parameters.empty() ? 0 : shards.size() / parameters.size();  // of state: m, v
  for (std::size_t i = 0; i < shards.size(); ++i)
    state.optimizer.push_back(whole(shards[i], *parameters[i / kinds]));
  if (any_divided)
    for (const Parameter* p : parameters)
      state.parameters.push_back(whole(p->value.to_host(optimizer.context().stream), *p));
  return world.rank() == 0 ? state : DenseState();
}

}  // namespace hstu
