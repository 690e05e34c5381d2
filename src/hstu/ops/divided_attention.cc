#include "hstu/ops/divided_attention.h"

#include <numeric>
#include <vector>

#include "hstu/ops/forget_value.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

// The shape of the heads that this rank computes. Gradients of tables are parts of a sum over the group.
AttentionShape shape_of_heads(Tape& tape, AttentionShape shape, ColumnRange heads) {
  const Context& context = tape.context();
  const auto cut = [&](Variable& table) {
    if (!table.defined() || table.rows() == 1) return;
    std::vector<std::int32_t> rows(static_cast<std::size_t>(heads.width()));
    std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(heads.begin));
    table = gather_rows(tape, table, row_index(rows).copy(context));
  };
  cut(shape.bias.position_table);
  cut(shape.bias.time_table);
  shape.dropout.key += static_cast<std::uint64_t>(heads.begin);  // of head 0
  shape.heads = heads.width();
  shape.division = nullptr;
  return shape;
}

Variable attention_of_heads(Tape& tape, const Columns& q, const Columns& k, const Columns& v,
                            const AttentionShape& shape) {
  const auto& [group, queries, tokens, runs] = *shape.division;
  const SharedHeads heads{shape.heads, shape.head_dim, group};
  const Variable all_q = swap_to_heads(tape, q, queries, heads),
                 all_k = swap_to_heads(tape, k, tokens, heads), all_v = swap_to_heads(tape, v, tokens, heads);
  const Variable o =
      attention(tape, all_q, all_k, all_v, shape_of_heads(tape, shape, heads.heads_of(group.rank())));
  Variable result = swap_to_rows(tape, o, queries, heads);
  // The gradient of columns through SiLU needs those before it.
  for (const Columns* const x : {&q, &k, &v})
    if (x->activated.defined()) x->activated.drop_value();
  forget_value(o, tape.context());
  if (shape.exchanges_again)
    for (const Variable* const x : {&all_q, &all_k, &all_v}) x->drop_value();
  return result;
}

// This rank's queries, with the keys that they see.
Variable attention_of_runs(Tape& tape, const Columns& q, const Columns& k, const Columns& v,
                           AttentionShape shape) {
  require(shape.dropout.rate == 0, "attention: ranks that share samples by keys have no dropout of weights");
  const Group& group = shape.division->group;
  const QueryRuns& runs = *shape.division->runs;
  const Variable all_k = gather_keys(tape, k, runs.keys, group),
                 all_v = gather_keys(tape, v, runs.keys, group);
  shape.offsets = runs.offsets, shape.query_offsets = runs.query_offsets,
  shape.query_first = runs.query_first;
  shape.contexts = runs.contexts, shape.targets = runs.targets, shape.sample_scale = runs.sample_scale;
  shape.bias.query_time = runs.query_time, shape.bias.key_time = runs.key_time;
  shape.division = nullptr;
  Variable o = attention(tape, q, all_k, all_v, shape);
  if (shape.exchanges_again) all_k.drop_value(), all_v.drop_value();
  return o;
}

}  // namespace

Variable divided_attention(Tape& tape, const Columns& q, const Columns& k, const Columns& v,
                           const AttentionShape& shape) {
  require(!shape.past.k.defined() && !shape.kept.tokens.defined(),
          "attention: samples that ranks share have no past");
  return shape.division->runs ? attention_of_runs(tape, q, k, v, shape)
                              : attention_of_heads(tape, q, k, v, shape);
}

}  // namespace hstu::ops
