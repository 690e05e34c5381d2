// The softmax over a pool of items that all positions of all ranks share: items of the batch, items drawn
// from the catalogue, or both.
#pragma once

#include <cstdint>

#include "hstu/loss/full_softmax.h"
#include "hstu/tensor/tape.h"

namespace hstu::loss {

enum class PoolForm {
  uniform,   // R items drawn from the catalogue, the same on all ranks
  in_batch,  // the items that occur in the batch of all ranks
  mixed,     // both
};

// What a rank gives to the pool. Alphabet: P items of this rank. The targets of its positions are among them,
// also where the form does not make them negatives. Rows are on the device of the context, lists on the host.
struct Pool {
  PoolForm form = PoolForm::in_batch;
  Variable rows;       // (P, E) raw rows
  Tensor ids;          // (P) i64 ascending
  Tensor occurrences;  // (P) i32: how often the item occurs in this rank's batch; 0: it is no negative of the
                       // batch
  Tensor draws;        // (P) i32: how often it was drawn, the same on every rank that has the item
  // The correction by the expected number of times that the pool has an item, q = n frequency + rate, where n
  // is the sum of all ranks' occurrences (0 with `uniform`): c exp(s) / q takes the place of exp(s), with c =
  // occurrences of all ranks + draws. The positive is not corrected, as it is not drawn. Without it
  // (undefined), each draw of `uniform` is a term, c exp(s), and an item of other forms is one term, exp(s).
  Tensor frequency;  // (P) f32: the share of the item among all that the batches are taken from
  double rate = 0;   // R / V of the catalogue, 0 with `in_batch`
};

// The sum over this rank's positions i of log(exp(s_iy) + sum over the pool's items j other than y of w_j
// exp(s_ij))
// - s_iy, divided by `divisor`; s_ij, y, `divisor` and the meeting of all ranks as in full_softmax. An item
// that several ranks have counts once.
Variable pooled_softmax(Tape& tape, const Variable& vectors, const Tensor& targets, const Pool& pool,
                        const SoftmaxOptions& options, double divisor);

}  // namespace hstu::loss
