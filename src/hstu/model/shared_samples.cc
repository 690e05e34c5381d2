#include "hstu/model/shared_samples.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "hstu/model/query_runs.h"
#include "hstu/ops/exchange.h"
#include "hstu/ops/forget_value.h"
#include "hstu/ops/gather_sum.h"

namespace hstu {
namespace {

std::size_t index(std::int64_t rank) {
  return static_cast<std::size_t>(rank);
}

std::int32_t rank_of(const StackSample& sample, std::int64_t token, int ranks) {
  return TokenPieces{sample.tokens, ranks}.rank_of(token);
}

// The message of each rank of a group.
std::vector<std::vector<std::int64_t>> messages_of(const Group& group,
                                                   const std::vector<std::int64_t>& mine) {
  if (group.size() == 1) return {mine};
  const std::vector<std::int64_t> size{std::ssize(mine)};
  const std::vector<std::int64_t> sizes = group.host.all_gather(std::span(size)),
                                  all = group.host.all_gather(std::span(mine));
  std::vector<std::vector<std::int64_t>> messages;
  auto at = all.begin();
  for (const std::int64_t n : sizes) {
    messages.emplace_back(at, at + n);
    at += n;
  }
  return messages;
}

}  // namespace

std::optional<SharedSamples> SharedSamples::find(const Context& context, const StackTokens& tokens,
                                                 DType type, std::int64_t heads) {
  if (context.groups == nullptr || context.groups->context.size() == 1 || tokens.mask.keys != nullptr)
    return std::nullopt;
  const Group& group = context.groups->context;
  // Most batches have no long sample, and then no list but the offsets is read.
  const std::int64_t above = context.groups->context_above;
  std::vector<std::int64_t> message;
  std::optional<SamplesOfBatch> batch;
  if (longest_sample(tokens, context) > above) {
    batch.emplace(tokens, context);
    for (const StackSample& s : batch->all(group.rank()))
      if (s.tokens > above) append(s, message);
  }
  message = group.host.all_gather(std::span<const std::int64_t>(message));
  // The layers of a tensor group's ranks exchange too: all of them make this pass, or none does.
  const std::vector<std::vector<std::int64_t>> messages = messages_of(context.groups->tensor, message);
  std::vector<Samples> shared;
  shared.reserve(messages.size());
  for (const std::vector<std::int64_t>& of_rank : messages)
    shared.push_back(samples_in(of_rank, StackForm(tokens)));
  if (std::ranges::all_of(shared, [](const Samples& samples) { return samples.empty(); }))
    return std::nullopt;
  if (!batch) batch.emplace(tokens, context);
  return SharedSamples(context, tokens, type, heads, batch->all(group.rank()), shared);
}

SharedSamples::SharedSamples(const Context& context, const StackTokens& tokens, DType type,
                             std::int64_t heads, const Samples& mine, const std::vector<Samples>& shared)
    : group_(context.groups->context),
      tensor_(context.groups->tensor),
      above_(context.groups->context_above),
      divides_heads_(heads % group_.size() == 0) {
  const std::vector<std::int64_t> none(index(group_.size()), 0);
  given_ = returned_ = {none, none};
  TokenLists of_alone;
  for (const StackSample& s : mine)
    if (s.tokens <= above_) of_alone.add(s, [](std::int64_t) { return true; });
  alone_ = of_alone.tokens(tokens, type, context);
  const Samples& own = shared[index(tensor_.rank())];
  shared_ = tokens_of(own, tokens, type, context);
  count_moves(own);
  if (tensor_.size() > 1) join(shared, tokens, type, context);
  take_apart(mine, context);
}

bool SharedSamples::has(const StackSample& sample, std::int64_t token) const {
  return rank_of(sample, token, group_.size()) == group_.rank();
}

void SharedSamples::count_moves(const Samples& shared) {
  for (const StackSample& s : shared) {
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      if (!has(s, t)) continue;
      ++given_.from[index(s.owner)];
      if (s.wants(t)) ++returned_.to[index(s.owner)];
    }
  }
}

StackTokens SharedSamples::tokens_of(const Samples& samples, const StackTokens& like, DType type,
                                     const Context& context) const {
  TokenLists lists;
  std::vector<std::int32_t> of_tokens, of_wanted;  // the rank of each
  for (const StackSample& s : samples) {
    lists.add(s, [&](std::int64_t t) { return has(s, t); });
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      of_tokens.push_back(rank_of(s, t, group_.size()));
      if (s.wants(t)) of_wanted.push_back(of_tokens.back());
    }
  }
  StackTokens tokens = lists.tokens(like, type, context);
  ops::AttentionDivision all{.group = group_}, wanted{.group = group_};
  if (divides_heads_) {
    all.tokens = wanted.tokens = all.queries = ops::divided_rows(of_tokens, group_);
    wanted.queries = ops::divided_rows(of_wanted, group_);
  } else {
    const auto runs = [&](bool some) { return query_runs(samples, some, group_, like, type, context); };
    all.runs = runs(false), wanted.runs = like.wanted.rows.defined() ? runs(true) : all.runs;
  }
  tokens.all.division = std::make_shared<ops::AttentionDivision>(all);
  tokens.wanted.division = std::make_shared<ops::AttentionDivision>(wanted);
  return tokens;
}

// The tokens of all ranks of the tensor group, in their order.
void SharedSamples::join(const std::vector<Samples>& shared, const StackTokens& like, DType type,
                         const Context& context) {
  Samples all;
  std::vector<std::int64_t> tokens, wanted;  // of each rank
  for (const Samples& of_rank : shared) {
    std::int64_t of_tokens = 0, of_wanted = 0;
    for (const StackSample& s : of_rank) {
      for (std::int64_t t = 0; t < s.tokens; ++t) {
        of_tokens += has(s, t) ? 1 : 0;
        of_wanted += has(s, t) && s.wants(t) ? 1 : 0;
      }
    }
    tokens.push_back(of_tokens), wanted.push_back(of_wanted);
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  }
  joined_ = GroupBatch{.tokens = tokens_of(all, like, type, context),
                       .every_layer = {&context.groups->tensor, tokens, tokens, {}},
                       .last_layer = {&context.groups->tensor, tokens, tokens, {}}};
  if (like.wanted.rows.defined())
    joined_->last_layer = {&context.groups->tensor, tokens, wanted, shared_.wanted.rows};
}

// The rows of this rank's samples, and of their results.
void SharedSamples::take_apart(const Samples& mine, const Context& context) {
  std::vector<std::int32_t> alone, alone_result, returned_result;
  std::vector<std::vector<std::int32_t>> given(given_.to.size());
  for (const StackSample& s : mine) {
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      const bool is_shared = s.tokens > above_;
      std::vector<std::int32_t>& rows = is_shared ? given[index(rank_of(s, t, group_.size()))] : alone;
      rows.push_back(static_cast<std::int32_t>(s.first + t));
      if (is_shared && s.wants(t)) ++returned_.from[index(rank_of(s, t, group_.size()))];
    }
  }
  std::vector<std::int32_t> given_rows;
  for (std::size_t r = 0; r < given.size(); ++r) {
    given_.to[r] = std::ssize(given[r]);
    given_rows.insert(given_rows.end(), given[r].begin(), given[r].end());
  }
  std::vector<std::int64_t> next(given.size());  // of the wanted tokens from each rank
  std::exclusive_scan(returned_.from.begin(), returned_.from.end(), next.begin(), std::int64_t{0});
  std::int32_t next_alone = 0;
  for (const StackSample& s : mine) {
    for (std::int64_t t = s.tokens - s.wanted; t < s.tokens; ++t) {
      const bool is_shared = s.tokens > above_;
      std::int64_t& place = next[index(rank_of(s, t, group_.size()))];
      alone_result.push_back(is_shared ? -1 : next_alone++);
      returned_result.push_back(is_shared ? static_cast<std::int32_t>(place++) : -1);
    }
  }
  alone_rows_ = on_device(alone, context), given_rows_ = on_device(given_rows, context);
  alone_result_ = on_device(alone_result, context), returned_result_ = on_device(returned_result, context);
}

Variable SharedSamples::compute(Tape& tape, const Variable& x, const Layers& layers) const {
  const Variable alone = layers(ops::gather_rows(tape, x, alone_rows_), alone_, nullptr);
  const auto sent = [&](const Variable& rows, const Counts& counts) {
    Variable received = ops::exchange_rows(tape, rows, counts.to, counts.from, group_);
    ops::forget_value(rows, tape.context());
    return received;
  };
  const Variable given = sent(ops::gather_rows(tape, x, given_rows_), given_);
  const Variable returned = sent(layers(given, shared_, joined_ ? &*joined_ : nullptr), returned_);
  return ops::gather_sum(tape, {{alone, alone_result_}, {returned, returned_result_}}, {});
}

}  // namespace hstu
