// Rows of all ranks, for losses over what is divided among ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/comm/groups.h"
#include "hstu/tensor/context.h"
#include "hstu/tensor/tensor.h"

namespace hstu::loss {

// Rows travel between the ranks of the context's world. Without groups, and in a world of
// one rank, all is as it was. All ranks call the same functions together. Alphabet: R rows of this rank, T of
// all.
class RankRows {
 public:
  RankRows(const Context& context, std::int64_t mine);

  int ranks() const { return world_ == nullptr ? 1 : world_->size(); }
  int rank() const { return world_ == nullptr ? 0 : world_->rank(); }
  std::int64_t all() const;    // T
  std::int64_t first() const;  // of this rank's rows among all
  std::int64_t mine() const { return of_ranks_[static_cast<std::size_t>(rank())]; }  // R

  // x (R, W) of all ranks: (T, W). f32, f64 or bf16.
  Tensor gathered(const Tensor& x) const;
  // ids (R) i64 of all ranks: (T).
  Tensor gathered_ids(const Tensor& ids) const;
  // x (N, W) of the same N on all ranks, one after the other: (ranks * N, W).
  Tensor of_all_ranks(const Tensor& x) const;
  // This rank's rows of the sum of x (T, W) over ranks: (R, W).
  Tensor scattered_sum(const Tensor& x) const;

 private:
  Context context_;
  const Group* world_ = nullptr;        // null: one rank
  std::vector<std::int64_t> of_ranks_;  // (ranks)
};

}  // namespace hstu::loss
