#include "hstu/kinds/semantic_ids/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

struct Extended {
  std::int32_t parent, code;
  float score;
  CodeTrie::Prefix prefix;

  bool is_before(const Extended& other) const {
    const auto key = [](float x) { return std::isnan(x) ? -std::numeric_limits<float>::infinity() : x; };
    const float a = key(score), b = key(other.score);
    return a != b ? a > b : prefix.begin < other.prefix.begin;
  }
};

// log(sum of e^x) of a row.
float log_sum(const float* x, std::int64_t n) {
  const float largest = *std::max_element(x, x + n);
  double sum = 0;
  for (std::int64_t c = 0; c < n; ++c) sum += std::exp(static_cast<double>(x[c] - largest));
  return largest + static_cast<float>(std::log(sum));
}

}  // namespace

Beams first_beams(const CodeTrie& trie, std::int64_t users) {
  const auto n = static_cast<std::size_t>(users);
  Beams beams;
  for (std::int64_t u = 0; u <= users; ++u) beams.offsets.push_back(u);
  beams.parent.assign(n, -1), beams.code.assign(n, -1), beams.score.assign(n, 0);
  beams.prefix.assign(n, trie.root());
  return beams;
}

Beams extend(const CodeTrie& trie, const Beams& beams, std::int64_t level, const float* logits,
             std::int64_t codes, std::int64_t width) {
  require(width >= 1, "beam search: expected a width of at least 1");
  std::vector<std::vector<Extended>> kept(static_cast<std::size_t>(beams.users()));
  parallel_blocks(beams.users(), 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t u = first; u < end; ++u) {
      std::vector<Extended>& all = kept[static_cast<std::size_t>(u)];
      for (std::int64_t b = beams.offsets[static_cast<std::size_t>(u)];
           b < beams.offsets[static_cast<std::size_t>(u) + 1]; ++b) {
        const auto at = static_cast<std::size_t>(b);
        const float* const row = logits + b * codes;
        const float from = beams.score[at] - log_sum(row, codes);
        trie.each_child(beams.prefix[at], level, [&](std::int32_t code, CodeTrie::Prefix prefix) {
          all.push_back({static_cast<std::int32_t>(b), code, from + row[code], prefix});
        });
      }
      const auto count = std::min<std::int64_t>(width, std::ssize(all));
      std::partial_sort(all.begin(), all.begin() + count, all.end(),
                        [](const Extended& a, const Extended& b) { return a.is_before(b); });
      all.resize(static_cast<std::size_t>(count));
    }
  });
  Beams next;
  next.offsets.push_back(0);
  for (const std::vector<Extended>& of_user : kept) {
    for (const Extended& beam : of_user) {
      next.parent.push_back(beam.parent);
      next.code.push_back(beam.code);
      next.score.push_back(beam.score);
      next.prefix.push_back(beam.prefix);
    }
    next.offsets.push_back(next.size());
  }
  return next;
}

}  // namespace hstu
