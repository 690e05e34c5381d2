// Long samples, whose tokens the ranks of a context group share while layers compute them. Each sample has
// one owner, the rank whose batch it is in: it looks the sample's rows up and has the outputs, the loss and
// the gradients of rows. Before the layers every rank of the group gets some of the tokens; behind them the
// owner gets the wanted ones back. Where ranks share heads too, the ranks of a tensor group compute the
// tokens that they have of the long samples of all their context groups together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hstu/model/group_batch.h"
#include "hstu/model/stack_samples.h"

namespace hstu {

class SharedSamples {
 public:
  // Those of the context's groups (Groups::context_above) in a pass whose tokens are of `type`. All ranks of
  // a context group call it together, and with tensor groups all ranks of the context groups that these
  // join. None where no such rank has a long sample, and in passes that continue earlier tokens.
  // `heads`: of a layer on each rank. Where the ranks cannot divide them evenly, they give each other keys
  // and values (query_runs.h).
  static std::optional<SharedSamples> find(const Context& context, const StackTokens& tokens, DType type,
                                           std::int64_t heads);

  // `group`: the same tokens with those of the others of a tensor group; null: the layers find out.
  using Layers =
      std::function<Variable(const Variable& x, const StackTokens& tokens, const GroupBatch* group)>;
  // (n, D) of the wanted tokens, from x (T, D): `layers` compute this rank's other samples, and then the
  // tokens of long ones that this rank has, together with the other ranks.
  Variable compute(Tape& tape, const Variable& x, const Layers& layers) const;

 private:
  using Samples = std::vector<StackSample>;

  // mine: samples of this rank, whose lists `tokens` has; shared: the long ones of the context group of each
  // rank of the tensor group.
  SharedSamples(const Context& context, const StackTokens& tokens, DType type, std::int64_t heads,
                const Samples& mine, const std::vector<Samples>& shared);

  struct Counts {
    std::vector<std::int64_t> to, from;  // (ranks) rows to each rank, and from it
  };

  bool has(const StackSample& sample, std::int64_t token) const;
  void count_moves(const Samples& shared);
  // Of some long samples, as the ranks of the group share them.
  StackTokens tokens_of(const Samples& samples, const StackTokens& like, DType type,
                        const Context& context) const;
  void join(const std::vector<Samples>& shared, const StackTokens& like, DType type, const Context& context);
  void take_apart(const Samples& mine, const Context& context);

  Group group_, tensor_;
  std::int64_t above_;
  bool divides_heads_;
  StackTokens alone_, shared_;
  std::optional<GroupBatch> joined_;       // shared_ of all ranks of the tensor group; none: there is one
  Tensor alone_rows_, given_rows_;         // i32: rows of x that stay, and those for one rank after another
  Counts given_, returned_;                // tokens before the layers, wanted ones behind them
  Tensor alone_result_, returned_result_;  // (n) i32: the row of each result; -1: it is among the others
};

}  // namespace hstu
