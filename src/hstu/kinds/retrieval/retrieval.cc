#include "hstu/kinds/retrieval/retrieval.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/ops/convert.h"

namespace hstu {
namespace {

constexpr double kActionDeviation = 0.02;

// Whether not all tokens are asked for: in evaluations and requests.
bool has_queries(const Batch& batch) {
  return std::ranges::any_of(batch.columns(),
                             [](const Batch::Column& column) { return column.name == retrieval::kQuery; });
}

// The columns of the positions that are asked for.
StackRows wanted_rows(const Batch& batch, const StackRows& all) {
  if (!has_queries(batch)) return all;
  return {.rows = batch.tensor(retrieval::kQuery),
          .offsets = batch.tensor(retrieval::kQueryOffsets),
          .names = batch.tensor(retrieval::kQueryName),
          .query_time = all.query_time.defined() ? batch.tensor(retrieval::kLastQueryTime) : Tensor()};
}

}  // namespace

Retrieval::Retrieval(const RetrievalConfig& config, SampleFeatures features, std::uint64_t seed, DType type)
    : config_(config),
      layout_(std::move(features), config.loss.drawn(), config.loss.has_pool(), config.actions),
      parameters_(derive_key(seed, "dense parameters"), type),
      compute_(type),
      encoder_(parameters_, encoder_config(config)),
      action_(config.actions
                  ? &parameters_.add("encoder.action", {retrieval::kActionRows, config.embedding_dim},
                                     Initializer::normal(kActionDeviation))
                  : nullptr) {
  require(config.history > 0, "retrieval: expected the length of histories");
}

void Retrieval::move_to(const Context& context, DType compute) {
  compute_ = compute;
  parameters_.move_to(context);
}

Variable Retrieval::forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                            const Draws& draws) const {
  const std::vector<FeatureSpec>& contexts = layout_.sample_features().context;
  const std::size_t of_items = 1 + config_.attributes.size();
  require(rows.size() == of_items + contexts.size(),
          "retrieval: expected rows of items, {} attributes and {} contexts, found those of {} features",
          config_.attributes.size(), contexts.size(), rows.size());
  SequenceTokens tokens;
  tokens.item = batch.tensor(index_column(layout_.sample_features().item.name));
  tokens.position = batch.tensor(retrieval::kPosition);
  tokens.all = {
      .rows = {}, .offsets = batch.tensor(retrieval::kOffsets), .names = batch.tensor(retrieval::kTokenName)};
  if (encoder_.needs_times()) {
    tokens.all.query_time = batch.tensor(retrieval::kQueryTime);
    tokens.all.key_time = batch.tensor(retrieval::kKeyTime);
  }
  tokens.wanted = wanted_rows(batch, tokens.all);
  tokens.keys = batch.history_keys;
  if (action_ != nullptr)
    tokens.added = {{ops::weight(tape, *action_, compute_), batch.tensor(retrieval::kAction)}};
  for (std::size_t c = 0; c < contexts.size(); ++c)
    tokens.added.push_back({ops::convert(tape, rows[of_items + c], compute_),
                            batch.tensor(retrieval::token_context_column(contexts[c].name))});
  const Variable items = item_vectors(tape, batch, rows, config_.attributes);
  const Variable vectors = encoder_(tape, ops::convert(tape, items, compute_), tokens, draws);
  // Training compares them in their own type.
  return has_queries(batch) ? ops::convert(tape, vectors, parameters_.type()) : vectors;
}

HstuStackConfig Retrieval::layers() const {
  const SequenceEncoderConfig& encoder = encoder_.config();
  return encoder.blocks == SequenceBlocks::hstu ? encoder.hstu : HstuStackConfig();
}

StackFlops Retrieval::flops(const Batch& batch) const {
  const auto offsets = batch.values<std::int64_t>(retrieval::kOffsets);
  const bool all =
      batch.values<std::int64_t>(retrieval::kTarget).size() == static_cast<std::size_t>(batch.tokens);
  std::vector<SampleQueries> samples;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    const std::int64_t tokens = offsets[b + 1] - offsets[b];
    if (tokens == 0) continue;
    samples.push_back({causal_mask(tokens), static_cast<std::int32_t>(all ? tokens : 1)});
  }
  const SequenceEncoderConfig& encoder = encoder_.config();
  return encoder.blocks == SequenceBlocks::hstu ? stack_flops(encoder.hstu, samples)
                                                : sasrec_flops(encoder.sasrec, samples);
}

}  // namespace hstu
