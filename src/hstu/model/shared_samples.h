// Long samples, whose tokens the ranks of a context group share while layers compute them. Each sample has
// one owner, the rank whose batch it is in: it looks the sample's rows up and has the outputs, the loss and
// the gradients of rows. Before the layers every rank of the group gets some of the tokens; behind them the
// owner gets the wanted ones back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hstu/model/stack_samples.h"

namespace hstu {

class SharedSamples {
 public:
  // Those of the context's groups (Groups::context_above) in a pass whose tokens are of `type`. All ranks of
  // a context group call it together, and with tensor groups all ranks of the context groups that these
  // join. None where no such rank has a long sample, and in passes that continue earlier tokens.
  static std::optional<SharedSamples> find(const Context& context, const StackTokens& tokens, DType type);

  using Layers = std::function<Variable(const Variable& x, const StackTokens& tokens)>;
  // (n, D) of the wanted tokens, from x (T, D): `layers` compute this rank's other samples, and then the
  // tokens of long ones that this rank has, together with the other ranks.
  Variable compute(Tape& tape, const Variable& x, const Layers& layers) const;

 private:
  // mine: samples of this rank, whose lists `tokens` has; shared: the long ones of the group.
  SharedSamples(const Context& context, const StackTokens& tokens, DType type,
                const std::vector<StackSample>& mine, const std::vector<StackSample>& shared);

  struct Counts {
    std::vector<std::int64_t> to, from;  // (ranks) rows to each rank, and from it
  };

  void divide(const std::vector<StackSample>& shared, const Context& context);
  void take_apart(const std::vector<StackSample>& mine, const Context& context);

  Group group_;
  std::int64_t above_;
  StackTokens alone_, shared_;
  Tensor alone_rows_, given_rows_;         // i32: rows of x that stay, and those for one rank after another
  Counts given_, returned_;                // tokens before the layers, wanted ones behind them
  Tensor alone_result_, returned_result_;  // (n) i32: the row of each result; -1: it is among the others
};

}  // namespace hstu
