#include "hstu/loss/pooled_softmax.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/comm/groups.h"
#include "hstu/loss/catalogue_softmax.h"

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

// The items that this rank is the first to have: rows of the pool's, as a catalogue.
struct Owned {
  std::vector<std::int64_t> ids, numbers;  // numbers: of rows in the pool of this rank
  Tensor bias, gradient;
};

Owned owned_by(const Group& world, const Pool& pool, DType type) {
  const std::vector<Pooled> all = merged(world, pool);
  std::int64_t n = 0;
  for (const Pooled& item : all) n += item.occurrences;
  Owned owned;
  std::vector<double> bias;
  const std::int64_t *const begin = pool.ids.data<std::int64_t>(), *at = begin;
  for (const Pooled& item : all) {
    if (item.rank != world.rank()) continue;
    while (*at != item.id) ++at;
    owned.ids.push_back(item.id);
    owned.numbers.push_back(at - begin);
    const float* const frequency = pool.frequency.defined() ? pool.frequency.data<float>() : nullptr;
    bias.push_back(bias_of(pool, item, n, frequency != nullptr ? double{frequency[at - begin]} : 0));
  }
  owned.bias = Tensor::empty({std::ssize(bias)}, type);
  with_float_type(type, [&]<typename T>() {
    std::transform(bias.begin(), bias.end(), owned.bias.mutable_data<T>(),
                   [](double b) { return static_cast<T>(b); });
  });
  owned.gradient = Tensor::zeros({std::ssize(bias), pool.rows.cols()}, type);
  return owned;
}

CatalogueRows catalogue_of(const std::shared_ptr<const Owned>& owned, const Variable& rows) {
  return {.size = std::ssize(owned->ids),
          .width = rows.cols(),
          .ids = owned->ids.data(),
          .device_ids = {},
          .read =
              [owned, rows](std::int64_t first, Tensor& block) {
                for (std::int64_t i = 0; i < block.rows(); ++i) {
                  const std::int64_t from = owned->numbers[static_cast<std::size_t>(first + i)];
                  Tensor to = block.row_range(i, i + 1);
                  to.copy_from(rows.value().row_range(from, from + 1));
                }
              },
          .gradient = rows.needs_gradient() ? std::function([owned] { return owned->gradient; })
                                            : std::function<Tensor()>()};
}

// The gradient of the items that the rank owns goes to their rows; that of others is 0.
void pass_on(const Owned& owned, const Variable& rows) {
  if (!rows.needs_gradient()) return;
  GradientSlot slot = rows.gradient_slot();
  if (!slot.accumulate) slot.tensor.fill_zero();
  const std::int64_t width = rows.cols();
  with_float_type(slot.tensor.dtype(), [&]<typename T>() {
    for (std::size_t i = 0; i < owned.numbers.size(); ++i) {
      T* const to = slot.tensor.mutable_data<T>() + owned.numbers[i] * width;
      const T* const from = owned.gradient.data<T>() + static_cast<std::int64_t>(i) * width;
      for (std::int64_t e = 0; e < width; ++e) to[e] += from[e];
    }
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
  check(context.device().is_host(),
        "the softmax over a pool has no form for GPUs yet: set [loss] to \"full\", or train "
        "on processors");
  check_shapes(pool, vectors.cols());
  const Group world = context.groups != nullptr ? context.groups->world : Group{};
  const auto owned =
      std::make_shared<const Owned>(owned_by(world, pool, accumulator_of(vectors.value().dtype())));
  return catalogue_softmax(tape, vectors, targets, catalogue_of(owned, pool.rows),
                           {.name = "pooled_softmax",
                            .softmax = options,
                            .bias = owned->bias,
                            .rows = pool.rows,
                            .finish = [owned, rows = pool.rows] { pass_on(*owned, rows); }},
                           divisor);
}

}  // namespace hstu::loss
