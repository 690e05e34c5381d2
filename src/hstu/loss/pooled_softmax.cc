#include "hstu/loss/pooled_softmax.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/comm/groups.h"
#include "hstu/kernels/gather_sum.h"
#include "hstu/loss/catalogue_softmax.h"
#include "hstu/ops/op.h"

namespace hstu::loss {
namespace {

constexpr double kExcluded = -1e9;  // a bias whose exponential is 0 and which is a number all the same

// An item of the pool of all ranks.
struct Pooled {
  std::int64_t id;
  std::int64_t occurrences, draws;
  int rank;  // the first that has it
};

template <typename T>
std::vector<T> of_all(const Group& world, const Tensor& mine) {
  return world.host.all_gather(std::span(mine.data<T>(), static_cast<std::size_t>(mine.size())));
}

// By id, ascending.
std::vector<Pooled> merged(const Group& world, const Pool& pool) {
  const std::int64_t size = pool.ids.size();
  const auto sizes = world.host.all_gather(std::span(&size, 1));
  const auto ids = of_all<std::int64_t>(world, pool.ids);
  const auto occurrences = of_all<std::int32_t>(world, pool.occurrences);
  const auto draws = of_all<std::int32_t>(world, pool.draws);
  std::vector<Pooled> all;
  all.reserve(ids.size());
  std::size_t at = 0;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    for (std::int64_t i = 0; i < sizes[rank]; ++i, ++at)
      all.push_back({ids[at], occurrences[at], draws[at], static_cast<int>(rank)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Pooled& a, const Pooled& b) { return a.id < b.id; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (kept > 0 && all[kept - 1].id == all[i].id)
      all[kept - 1].occurrences += all[i].occurrences;
    else
      all[kept++] = all[i];
  }
  all.resize(kept);
  return all;
}

// log(w) of an item, of which the batches of all ranks have `n` in all.
double bias_of(const Pool& pool, const Pooled& item, std::int64_t n, double frequency) {
  const bool of_batch = pool.form != PoolForm::uniform, drawn = pool.form != PoolForm::in_batch;
  const auto count = static_cast<double>((of_batch ? item.occurrences : 0) + (drawn ? item.draws : 0));
  if (count == 0) return kExcluded;
  if (!pool.frequency.defined()) return of_batch ? 0 : std::log(count);
  const double expected = (of_batch ? static_cast<double>(n) * frequency : 0) + (drawn ? pool.rate : 0);
  check(expected > 0,
        "pooled_softmax: item {} is in the pool, and its frequency says that it never is: count frequencies "
        "in the same "
        "dataset that the batches are taken from",
        item.id);
  return std::log(count / expected);
}

// The items that this rank is the first to have: rows of the pool's, as a catalogue. Tensors are on the
// device of the context.
struct Owned {
  std::vector<std::int64_t> ids;
  Tensor device_ids;  // on a GPU
  Tensor numbers;     // (V) i32, of rows in the pool of this rank
  Tensor bias, gradient;
};

Tensor on_device(const Tensor& host, const Context& context) {
  if (context.memory->dry() != nullptr) return Tensor::empty(host.shape(), host.dtype(), context);
  return context.device().is_host() ? host : host.copy(context);
}

Owned owned_by(const Group& world, const Pool& pool, DType type, const Context& context) {
  const std::vector<Pooled> all = merged(world, pool);
  std::int64_t n = 0;
  for (const Pooled& item : all) n += item.occurrences;
  Owned owned;
  std::vector<std::int32_t> numbers;
  std::vector<double> bias;
  const std::int64_t *const begin = pool.ids.data<std::int64_t>(), *at = begin;
  for (const Pooled& item : all) {
    if (item.rank != world.rank()) continue;
    while (*at != item.id) ++at;
    owned.ids.push_back(item.id);
    numbers.push_back(static_cast<std::int32_t>(at - begin));
    const float* const frequency = pool.frequency.defined() ? pool.frequency.data<float>() : nullptr;
    bias.push_back(bias_of(pool, item, n, frequency != nullptr ? double{frequency[at - begin]} : 0));
  }
  const std::int64_t size = std::ssize(bias);
  Tensor biases = Tensor::empty({size}, type);
  with_float_type(type, [&]<typename T>() {
    std::transform(bias.begin(), bias.end(), biases.mutable_data<T>(),
                   [](double b) { return static_cast<T>(b); });
  });
  owned.bias = on_device(biases, context);
  owned.numbers = on_device(Tensor::from<std::int32_t>({size}, numbers), context);
  if (!context.device().is_host())
    owned.device_ids = on_device(Tensor::from<std::int64_t>({size}, owned.ids), context);
  owned.gradient = Tensor::zeros({size, pool.rows.cols()}, type, context);
  return owned;
}

CatalogueRows catalogue_of(const std::shared_ptr<const Owned>& owned, const Variable& rows,
                           const Context& context) {
  return {
      .size = std::ssize(owned->ids),
      .width = rows.cols(),
      .ids = owned->ids.data(),
      .device_ids = owned->device_ids,
      .read =
          [owned, rows, context](std::int64_t first, Tensor& block) {
            ops::dispatch<ops::Operation::gather_sum>(context, block.dtype(), [&]<typename T>(auto stream) {
              const kernels::GatherRows<T> gather{.tokens = block.rows(),
                                                  .width = block.cols(),
                                                  .rows = rows.value().data<T>(),
                                                  .count = rows.rows(),
                                                  .index = owned->numbers.data<std::int32_t>() + first,
                                                  .y = block.mutable_data<T>(),
                                                  .stride = block.cols()};
              kernels::gather_rows(std::span(&gather, 1), stream);
            });
          },
      .gradient = rows.needs_gradient() ? std::function([owned] { return owned->gradient; })
                                        : std::function<Tensor()>()};
}

// The gradient of the items that the rank owns goes to their rows; that of others is 0.
void pass_on(const Owned& owned, const Variable& rows, const Context& context) {
  if (!rows.needs_gradient()) return;
  ops::dispatch<ops::Operation::gather_sum>(context, owned.gradient.dtype(), [&]<typename T>(auto stream) {
    const kernels::ScatterAdd<T> scatter{.tokens = owned.numbers.size(),
                                         .width = rows.cols(),
                                         .dy = owned.gradient.data<T>(),
                                         .stride = rows.cols(),
                                         .index = owned.numbers.data<std::int32_t>(),
                                         .count = rows.rows(),
                                         .drows = ops::gradient_of<T>(rows, context)};
    kernels::scatter_add(std::span(&scatter, 1), stream);
  });
}

void check_shapes(const Pool& pool, std::int64_t width) {
  const std::int64_t n = pool.rows.rows();
  require(pool.ids.size() == n && pool.occurrences.size() == n && pool.draws.size() == n &&
              pool.rows.cols() == width && (!pool.frequency.defined() || pool.frequency.size() == n),
          "pooled_softmax: a pool of {} rows has {} ids, {} occurrences, {} draws", n, pool.ids.size(),
          pool.occurrences.size(), pool.draws.size());
  const std::int64_t* const ids = pool.ids.data<std::int64_t>();
  require(std::adjacent_find(ids, ids + n, std::greater_equal<>()) == ids + n,
          "pooled_softmax: the ids of a pool ascend");
}

}  // namespace

Variable pooled_softmax(Tape& tape, const Variable& vectors, const Tensor& targets, const Pool& pool,
                        const SoftmaxOptions& options, double divisor) {
  const Context& context = tape.context();
  check_shapes(pool, vectors.cols());
  const Group world = context.groups != nullptr ? context.groups->world : Group{};
  const auto owned =
      std::make_shared<const Owned>(owned_by(world, pool, accumulator_of(vectors.value().dtype()), context));
  return catalogue_softmax(tape, vectors, targets, catalogue_of(owned, pool.rows, context),
                           {.name = "pooled_softmax",
                            .softmax = options,
                            .bias = owned->bias,
                            .rows = pool.rows,
                            .finish = [owned, rows = pool.rows, context] { pass_on(*owned, rows, context); }},
                           divisor);
}

}  // namespace hstu::loss
