#include <algorithm>
#include <cmath>
#include <vector>

#include "hstu/attention/beams.h"
#include "hstu/base/error.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

template <typename T>
class Beam {
 public:
  Beam(const BeamAttention& p, std::int64_t row, std::int64_t head) : p_(p), row_(row), head_(head) {
    const std::int64_t user = row / p.beams, begin = p.offsets[user];
    for (std::int64_t j = begin; j < p.offsets[user + 1]; ++j) add(p.k, p.v, j);
    for (std::int64_t c = 0; c < p.codes; ++c) {
      const BeamAttention::Code& code = p.code[static_cast<std::size_t>(c)];
      add(code.k, code.v, c + 1 == p.codes ? row : p.ancestors[row * (p.codes - 1) + c]);
    }
  }

  void put(const AttentionRows& o) const {
    const T largest = *std::max_element(scores_.begin(), scores_.end());
    std::vector<T> sum(static_cast<std::size_t>(p_.head_dim));
    T weights = 0;
    for (std::size_t j = 0; j < scores_.size(); ++j) {
      const T weight = std::exp(scores_[j] - largest);
      weights += weight;
      for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += weight * values_[j][d];
    }
    T* const to = static_cast<T*>(o.data) + row_ * o.row_stride + head_ * o.head_stride;
    for (std::size_t d = 0; d < sum.size(); ++d) to[d] = sum[d] / weights;
  }

 private:
  const T* at(const AttentionInput& rows, std::int64_t row) const {
    return static_cast<const T*>(rows.data) + row * rows.row_stride + head_ * rows.head_stride;
  }
  void add(const AttentionInput& k, const AttentionInput& v, std::int64_t row) {
    const T *const q = at(p_.q, row_), *const key = at(k, row);
    T sum = 0;
    for (std::int64_t d = 0; d < p_.head_dim; ++d) sum += q[d] * key[d];
    scores_.push_back(static_cast<T>(p_.alpha) * sum);
    values_.push_back(at(v, row));
  }

  const BeamAttention& p_;
  std::int64_t row_, head_;
  std::vector<T> scores_;
  std::vector<const T*> values_;
};

template <typename T>
void forward(const BeamAttention& p, const AttentionRows& o) {
  parallel_blocks(p.users * p.beams, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t head = 0; head < p.heads; ++head) Beam<T>(p, row, head).put(o);
  });
}

}  // namespace

void beam_attention(const BeamAttention& p, const AttentionRows& o) {
  require(0 <= p.codes && p.codes <= BeamAttention::kMostCodes, "attention of beams: {} codes", p.codes);
  if (p.type == AttentionType::fp32) return forward<float>(p, o);
  require(p.type == AttentionType::fp64, "attention of beams on the host: expected fp32 or fp64");
  forward<double>(p, o);
}

}  // namespace hstu
