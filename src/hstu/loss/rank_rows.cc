#include "hstu/loss/rank_rows.h"

#include <memory>
#include <numeric>

#include "hstu/ops/exchange.h"

namespace hstu::loss {
namespace {

Tensor gather(const Tensor& x, const std::vector<std::int64_t>& rows, const Group& world,
              const Context& context) {
  Tape forward(context, false);
  return ops::all_gather_rows(forward, Variable::constant(x), rows, world).value();
}

}  // namespace

RankRows::RankRows(const Context& context, std::int64_t mine) : context_(context), of_ranks_{mine} {
  if (context.groups == nullptr || context.groups->world.size() == 1) return;
  world_ = &context.groups->world;
  of_ranks_ = ops::rows_of_ranks(mine, *world_);
}

std::int64_t RankRows::all() const {
  return std::accumulate(of_ranks_.begin(), of_ranks_.end(), std::int64_t{0});
}

std::int64_t RankRows::first() const {
  return std::accumulate(of_ranks_.begin(), of_ranks_.begin() + rank(), std::int64_t{0});
}

Tensor RankRows::gathered(const Tensor& x) const {
  return world_ == nullptr ? x : gather(x, of_ranks_, *world_, context_);
}

Tensor RankRows::gathered_ids(const Tensor& ids) const {
  if (world_ == nullptr) return ids;
  // As pairs of words of 32 bits, which an exchange moves as they are.
  Tensor mine = ids;
  const Tensor words = Tensor::view({ids.size(), 2}, DType::f32, mine.mutable_raw(),
                                    std::make_shared<Tensor>(ids), ids.device());
  Tensor all = gather(words, of_ranks_, *world_, context_);
  return Tensor::view({all.rows()}, DType::i64, all.mutable_raw(), std::make_shared<Tensor>(all),
                      all.device());
}

Tensor RankRows::of_all_ranks(const Tensor& x) const {
  if (world_ == nullptr) return x;
  return gather(x, std::vector(of_ranks_.size(), x.rows()), *world_, context_);
}

Tensor RankRows::scattered_sum(const Tensor& x) const {
  if (world_ == nullptr) return x;
  Tape forward(context_, false);
  return ops::reduce_scatter_rows(forward, Variable::constant(x), of_ranks_, *world_).value();
}

}  // namespace hstu::loss
