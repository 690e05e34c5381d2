#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "hstu/base/threads.h"
#include "hstu/kernels/beam_step.h"

namespace hstu::kernels {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

struct Continued {
  float score;
  std::int32_t node;
  std::int64_t row;  // of the beam

  bool operator<(const Continued& other) const {
    return score != other.score ? score > other.score : node < other.node;
  }
};

// log(sum of e^x) of a row.
float log_sum(const float* x, std::int64_t n) {
  const float largest = *std::max_element(x, x + n);
  double sum = 0;
  for (std::int64_t c = 0; c < n; ++c) sum += std::exp(static_cast<double>(x[c] - largest));
  return largest + static_cast<float>(std::log(sum));
}

std::vector<Continued> continued_by(const BeamStep& p, std::int64_t user) {
  std::vector<Continued> all;
  for (std::int64_t row = user * p.before; row < (user + 1) * p.before; ++row) {
    if (p.node[row] < 0) continue;
    const float* const logits = p.logits + row * p.codes;
    const float from = p.score[row] - log_sum(logits, p.codes);
    for (std::int32_t node = p.first_child[p.node[row]]; node < p.first_child[p.node[row] + 1]; ++node) {
      const float score = from + logits[p.code[node]];
      all.push_back({std::isnan(score) ? kLowest : score, node, row});
    }
  }
  return all;
}

void put(const BeamStep& p, const Continued& beam, std::int64_t to) {
  p.next_score[to] = beam.score;
  p.next_node[to] = beam.node;
  p.next_code[to] = beam.node < 0 ? -1 : p.first_row + p.code[beam.node];
  if (p.next_ancestors == nullptr) return;
  std::int32_t* const ancestors = p.next_ancestors + to * (p.steps + 1);
  std::copy_n(p.ancestors + beam.row * p.steps, p.steps, ancestors);
  ancestors[p.steps] = static_cast<std::int32_t>(beam.row);
}

}  // namespace

void beam_step(const BeamStep& p, HostStream) {
  parallel_blocks(p.users, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t user = first; user < end; ++user) {
      std::vector<Continued> all = continued_by(p, user);
      const std::int64_t count = std::min(p.width, std::ssize(all));
      std::partial_sort(all.begin(), all.begin() + count, all.end());
      // Places without a beam have ancestors too, which attention may read.
      all.resize(static_cast<std::size_t>(count));
      all.resize(static_cast<std::size_t>(p.width), {kLowest, -1, user * p.before});
      for (std::int64_t b = 0; b < p.width; ++b) put(p, all[static_cast<std::size_t>(b)], user * p.width + b);
    }
  });
}

}  // namespace hstu::kernels
