// The softmax over all items of a catalogue, without its logits in memory.
#pragma once

#include <cstdint>

#include "hstu/loss/catalogue_rows.h"
#include "hstu/tensor/tape.h"

namespace hstu::loss {

// Rows shorter than this are divided by it, not by their norm.
inline constexpr double kUnitEpsilon = 1e-6;

struct SoftmaxOptions {
  double scale = 1;     // of the logits: 1 / temperature
  bool unit = false;    // rows of items are divided by their norm
  double longest = 0;   // a bound of the norms of vectors, up to a hundredth more; 0: unknown
  Tensor weights = {};  // (R) f32, factors of the positions' losses, not negative; undefined: 1
};

// The sum over this rank's positions i of weight * (log(sum over all items j of exp(s_ij)) - s_iy), divided
// by `divisor`, a tensor of one element in the type of sums; s_ij = scale * (vectors[i] . row j), y =
// targets[i]. The caller gives the global number of positions as divisor, so the sum of the results of all
// ranks is the mean. vectors (R, E), R may be 0 and differ from rank to rank; targets (R) i64 ids of the
// catalogue.
//
// Where the context has groups (tape.context().groups), all ranks of their world call it together, and so do
// the backward passes: the positions of every rank meet the items of every rank. Vectors travel, items do
// not.
//
// The gradients of vectors and of items have the same bits with any number of threads. Beside the vectors of
// all ranks and their gradient it takes less than 64 MB, whatever the size of the catalogue. On processors it
// throws Error, naming the id, for a target that no rank's catalogue has; on GPUs the loss is then NaN. On a
// Hopper GPU unit rows and a bound of the vectors, both in bfloat16, make it several times as fast
// (bounded_softmax.h).
Variable full_softmax(Tape& tape, const Variable& vectors, const Tensor& targets, const CatalogueRows& items,
                      const SoftmaxOptions& options, double divisor);

// The same with rows (V, E) that the tape has computed from those of `items`, in the type of sums: they have
// the gradient, in as much memory as they take, and items.read and items.gradient are not used.
Variable full_softmax(Tape& tape, const Variable& vectors, const Tensor& targets, const CatalogueRows& items,
                      const Variable& rows, const SoftmaxOptions& options, double divisor);

}  // namespace hstu::loss
