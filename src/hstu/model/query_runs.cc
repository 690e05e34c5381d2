#include "hstu/model/query_runs.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "hstu/attention/mask.h"

namespace hstu {
namespace {

using Range = TokenPieces::Range;
using Numbers = StackSample::Numbers;

SampleMask mask_of(const StackSample& s, const AttentionMask& mask) {
  return sample_mask(static_cast<std::int32_t>(s.tokens), static_cast<std::int32_t>(s.contexts),
                     static_cast<std::int32_t>(s.targets), mask.target_group, mask.left, mask.right);
}

// The queries of a run, and the keys from about the first to the last that one of them sees. Keys are counted
// from the first of them, which must not change what the mask counts from the beginning of the sample.
struct Run {
  Range queries, keys;

  Run(const StackSample& s, const Range& piece, bool wanted, const AttentionMask& mask) : queries(piece) {
    if (wanted) queries.begin = std::clamp(s.tokens - s.wanted, piece.begin, piece.end);
    if (queries.begin == queries.end) {
      keys = {queries.begin, queries.begin};
      return;
    }
    const SampleMask m = mask_of(s, mask);
    const Intervals seen =
        keys_of_queries(m, static_cast<std::int32_t>(queries.begin), static_cast<std::int32_t>(queries.end))
            .any;
    keys.begin = s.tokens;
    for (const auto& [from, to] : {std::pair{0, seen.end0}, {seen.lo1, seen.hi1}, {seen.lo2, seen.hi2}}) {
      if (from >= to) continue;
      keys.begin = std::min<std::int64_t>(keys.begin, std::max(from, 0));
      keys.end = std::max<std::int64_t>(keys.end, std::min(to, m.n));
    }
    if (m.c > 0 || mask.hidden_period > 0) keys.begin = 0;
  }
  std::int64_t count() const { return keys.end - keys.begin; }
};

Numbers part(Numbers list, std::int64_t first, std::int64_t count) {
  if (list.empty() || count == 0) return {};  // a run without queries may begin before the wanted tokens
  return list.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

// The run as a sample, whose wanted tokens are its queries.
StackSample sample_of(const StackSample& s, const Run& run, bool wanted, const AttentionMask& mask) {
  const SampleMask m = mask_of(s, mask);
  const std::int64_t queries = run.queries.end - run.queries.begin;
  return {.tokens = run.count(),
          .wanted = queries,
          .contexts = run.keys.begin == 0 ? m.c : 0,
          .targets = std::max<std::int64_t>(0, run.keys.end - m.h),
          .scale = s.scale,
          .key_time = part(s.key_time, run.keys.begin, run.count()),
          .wanted_time = wanted ? part(s.wanted_time, run.queries.begin - s.tokens + s.wanted, queries)
                                : part(s.query_time, run.queries.begin, queries)};
}

// What each rank computes of each sample.
class RunsOfRanks {
 public:
  using Runs = std::array<Run, 2>;

  RunsOfRanks(const std::vector<StackSample>& samples, int ranks, bool wanted, const AttentionMask& mask)
      : samples_(samples), ranks_(ranks) {
    for (const StackSample& s : samples) {
      const TokenPieces pieces{s.tokens, ranks};
      for (int r = 0; r < ranks; ++r)
        runs_.push_back({Run(s, pieces.of(r, 0), wanted, mask), Run(s, pieces.of(r, 1), wanted, mask)});
    }
  }

  const Runs& at(std::size_t sample, int rank) const {
    return runs_[sample * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank)];
  }
  // Calls body(sample, token) for the rows of rank `from` that rank `to` needs, in the order of `from`'s
  // rows.
  template <typename Body>
  void for_each_row(int from, int to, const Body& body) const {
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const Runs& runs = at(i, to);
      for (const int half : {0, 1}) {
        const Range piece = TokenPieces{samples_[i].tokens, ranks_}.of(from, half);
        for (std::int64_t t = piece.begin; t < piece.end; ++t)
          if (runs[0].keys.has(t) || runs[1].keys.has(t)) body(i, t);
      }
    }
  }

 private:
  const std::vector<StackSample>& samples_;
  int ranks_;
  std::vector<Runs> runs_;  // by sample, then by rank
};

// Numbers of the tokens of each sample.
using OfTokens = std::vector<std::vector<std::int32_t>>;

OfTokens of_tokens(const std::vector<StackSample>& samples) {
  OfTokens numbers;
  for (const StackSample& s : samples) numbers.emplace_back(static_cast<std::size_t>(s.tokens));
  return numbers;
}

std::int32_t& number(OfTokens& of, std::size_t sample, std::int64_t token) {
  return of[sample][static_cast<std::size_t>(token)];
}

std::vector<std::int32_t> ascending(std::int32_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

ops::DividedKeys divided_keys(const std::vector<StackSample>& samples, const RunsOfRanks& runs,
                              const Group& group, const Context& context) {
  const int mine = group.rank();
  OfTokens rows = of_tokens(samples), places = rows;  // this rank's row of a token; the received one
  std::int32_t count = 0, received = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (const int half : {0, 1}) {
      const Range piece = TokenPieces{samples[i].tokens, group.size()}.of(mine, half);
      for (std::int64_t t = piece.begin; t < piece.end; ++t) number(rows, i, t) = count++;
    }
  }
  ops::DividedKeys keys;
  std::vector<std::int32_t> given, of_runs;
  for (int r = 0; r < group.size(); ++r) {
    const std::int64_t given_before = std::ssize(given), received_before = received;
    runs.for_each_row(mine, r, [&](std::size_t i, std::int64_t t) { given.push_back(number(rows, i, t)); });
    runs.for_each_row(r, mine, [&](std::size_t i, std::int64_t t) { number(places, i, t) = received++; });
    keys.given.push_back(std::ssize(given) - given_before);
    keys.received.push_back(received - received_before);
  }
  for (std::size_t i = 0; i < samples.size(); ++i)
    for (const Run& run : runs.at(i, mine))
      for (std::int64_t t = run.keys.begin; t < run.keys.end; ++t) of_runs.push_back(number(places, i, t));
  const std::vector<std::int32_t> to = ascending(static_cast<std::int32_t>(given.size()));
  keys.given_rows = on_device(given, context);
  keys.places = on_device(std::vector<std::int64_t>(to.begin(), to.end()), context);
  keys.keys = on_device(of_runs, context);
  keys.own = on_device(ascending(count), context);
  return keys;
}

}  // namespace

int TokenPieces::rank_of(std::int64_t token) const {
  const auto piece = static_cast<int>(token * 2 * ranks / tokens);
  return std::min(piece, 2 * ranks - 1 - piece);
}

Range TokenPieces::of(int rank, int half) const {
  const std::int64_t piece = half == 0 ? rank : 2 * ranks - 1 - rank, pieces = 2 * ranks;
  const auto begin = [&](std::int64_t i) { return (i * tokens + pieces - 1) / pieces; };
  return {begin(piece), begin(piece + 1)};
}

ops::QueryRuns query_runs(const std::vector<StackSample>& samples, bool wanted, const Group& group,
                          StackTokens like, DType type, const Context& context) {
  const AttentionMask mask = like.mask.mask;
  const RunsOfRanks runs(samples, group.size(), wanted, mask);
  TokenLists lists;
  std::vector<std::int32_t> first;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (const Run& run : runs.at(i, group.rank())) {
      lists.add(sample_of(samples[i], run, wanted, mask), [](std::int64_t) { return false; });
      first.push_back(static_cast<std::int32_t>(run.queries.begin - run.keys.begin));
    }
  }
  // Queries have lists of their own, and no names.
  like.all.names = {}, like.wanted.rows = like.all.offsets;
  const StackTokens of = lists.tokens(like, type, context);
  return {.keys = divided_keys(samples, runs, group, context),
          .offsets = of.all.offsets,
          .query_offsets = of.wanted.offsets,
          .query_first = on_device(first, context),
          .contexts = of.mask.contexts,
          .targets = of.mask.targets,
          .sample_scale = of.mask.sample_scale,
          .query_time = of.wanted.query_time,
          .key_time = of.all.key_time};
}

}  // namespace hstu
