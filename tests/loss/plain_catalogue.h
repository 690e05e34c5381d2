// A catalogue in plain memory, divided among ranks by remainders of ids, and the softmax over it with all
// logits in memory, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "hstu/loss/catalogue_rows.h"
#include "support/op_cases.h"

namespace hstu::testing {

class PlainCatalogue {
 public:
  PlainCatalogue(const std::vector<std::int64_t>& ids, const Tensor& rows, int rank = 0, int ranks = 1) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] % ranks != rank) continue;
      ids_.push_back(ids[i]);
      numbers_.push_back(static_cast<std::int64_t>(i));
    }
    rows_ = Tensor::empty({std::ssize(ids_), rows.cols()}, rows.dtype());
    for (std::int64_t i = 0; i < rows_.rows(); ++i) {
      Tensor to = rows_.row_range(i, i + 1);
      const std::int64_t from = numbers_[static_cast<std::size_t>(i)];
      to.copy_from(rows.row_range(from, from + 1));
    }
    gradient_ = Tensor::zeros(rows_.shape(), accumulator_of(rows.dtype()));
  }

  CatalogueRows rows() const {
    return {.size = rows_.rows(),
            .width = rows_.cols(),
            .ids = ids_.data(),
            .device_ids = {},
            .read = [rows = rows_](
                        std::int64_t first,
                        Tensor& block) { block.copy_from(rows.row_range(first, first + block.rows())); },
            .gradient = [gradient = gradient_] { return gradient; }};
  }
  const Tensor& gradient() const { return gradient_; }
  // (V of this rank) the numbers of its items among all.
  const std::vector<std::int64_t>& numbers() const { return numbers_; }

 private:
  std::vector<std::int64_t> ids_, numbers_;
  Tensor rows_, gradient_;
};

// Positions and items. Ids ascend with gaps; one is above 2^24, where float has no odd numbers, and one above
// 2^32.
struct SoftmaxCase {
  std::int64_t positions, items, width;
  double scale = 20;
  bool unit = true;
};
struct SoftmaxInputs {
  std::vector<std::int64_t> ids;
  Tensor vectors, rows, targets;  // (R, E), (V, E), (R)
  std::vector<std::int64_t> target_numbers;
};
inline SoftmaxInputs softmax_inputs(const SoftmaxCase& c, DType type) {
  SoftmaxInputs in{
      {}, random_tensor({c.positions, c.width}, type, 1), random_tensor({c.items, c.width}, type, 2), {}, {}};
  if (c.unit) {
    Tape tape(false);
    in.vectors = ops::l2_normalise(tape, Variable::constant(in.vectors), 1e-6).value();
  }
  for (std::int64_t i = 0; i < c.items; ++i) in.ids.push_back(3 * i + i % 2);
  if (c.items >= 3) {
    in.ids[in.ids.size() - 3] = (std::int64_t{1} << 24) + 1;
    in.ids[in.ids.size() - 2] = (std::int64_t{1} << 24) + 2;
    in.ids[in.ids.size() - 1] = std::int64_t{1} << 40;
  }
  std::vector<std::int64_t> targets;
  for (std::int64_t r = 0; r < c.positions; ++r) {
    in.target_numbers.push_back(r < 4 ? c.items - 1 - std::min(r, c.items - 1) : r * 7 % c.items);
    targets.push_back(in.ids[static_cast<std::size_t>(in.target_numbers.back())]);
  }
  in.targets = Tensor::from<std::int64_t>({c.positions}, targets);
  return in;
}

// The loss and its gradients.
struct NaiveSoftmax {
  double loss = 0;
  std::vector<double> dvectors, drows;
};
template <typename T>
NaiveSoftmax naive_softmax(const SoftmaxCase& c, const SoftmaxInputs& in, double divisor) {
  const std::int64_t width = c.width;
  std::vector<double> rows(in.rows.data<T>(), in.rows.data<T>() + in.rows.size()), norms;
  const std::vector<double> f(in.vectors.data<T>(), in.vectors.data<T>() + in.vectors.size());
  for (std::int64_t i = 0; i < c.items; ++i) {
    double square = 0;
    double* const row = rows.data() + i * width;
    for (std::int64_t e = 0; e < width; ++e) square += row[e] * row[e];
    norms.push_back(c.unit ? std::max(std::sqrt(square), 1e-6) : 1);
    for (std::int64_t e = 0; e < width; ++e) row[e] /= norms.back();
  }
  NaiveSoftmax result{0, std::vector<double>(f.size()), std::vector<double>(rows.size())};
  std::vector<double> z(static_cast<std::size_t>(c.items));
  for (std::int64_t r = 0; r < c.positions; ++r) {
    for (std::int64_t i = 0; i < c.items; ++i) {
      double sum = 0;
      for (std::int64_t e = 0; e < width; ++e)
        sum += f[static_cast<std::size_t>(r * width + e)] * rows[static_cast<std::size_t>(i * width + e)];
      z[static_cast<std::size_t>(i)] = c.scale * sum;
    }
    const double most = *std::max_element(z.begin(), z.end());
    double sum = 0;
    for (const double x : z) sum += std::exp(x - most);
    const auto target = in.target_numbers[static_cast<std::size_t>(r)];
    result.loss += (most + std::log(sum) - z[static_cast<std::size_t>(target)]) / divisor;
    for (std::int64_t i = 0; i < c.items; ++i) {
      const double p = std::exp(z[static_cast<std::size_t>(i)] - most) / sum,
                   g = c.scale * (p - (i == target ? 1 : 0)) / divisor;
      for (std::int64_t e = 0; e < width; ++e) {
        const auto a = static_cast<std::size_t>(r * width + e), b = static_cast<std::size_t>(i * width + e);
        result.dvectors[a] += g * rows[b];
        result.drows[b] += g * f[a];
      }
    }
  }
  for (std::int64_t i = 0; i < c.items && c.unit; ++i) {
    double* const d = result.drows.data() + i * width;
    const double* const n = rows.data() + i * width;
    double along = 0;
    for (std::int64_t e = 0; e < width; ++e) along += n[e] * d[e];
    for (std::int64_t e = 0; e < width; ++e)
      d[e] = (d[e] - n[e] * along) / norms[static_cast<std::size_t>(i)];
  }
  return result;
}

}  // namespace hstu::testing
