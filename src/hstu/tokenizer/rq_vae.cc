#include "hstu/tokenizer/rq_vae.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/base/random.h"
#include "hstu/model/activated_mlp.h"
#include "hstu/model/parameters.h"
#include "hstu/ops/elementwise.h"
#include "hstu/optimizer/dense_optimizer.h"
#include "hstu/tokenizer/kmeans.h"
#include "hstu/tokenizer/rq_ops.h"

namespace hstu {
namespace {

std::vector<std::int64_t> widths(std::int64_t width, const RqVaeOptions& options, bool decoder) {
  std::vector<std::int64_t> all{width};
  all.insert(all.end(), options.hidden.begin(), options.hidden.end());
  all.push_back(options.code_width);
  if (decoder) std::reverse(all.begin(), all.end());
  return all;
}

class RqVae {
 public:
  RqVae(const ItemVectors& vectors, const ResidualKMeansOptions& sizes, const RqVaeOptions& options)
      : vectors_(vectors),
        sizes_(sizes),
        options_(options),
        set_(derive_key(sizes.seed, "rq-vae"), DType::f32),
        encoder_(set_, "encoder", widths(vectors.width, options, false), ops::Activation::relu),
        decoder_(set_, "decoder", widths(vectors.width, options, true), ops::Activation::relu),
        codebooks_(
            set_.add("codebooks", {sizes.levels * sizes.codes, options.code_width}, Initializer::zeros())),
        optimizer_(set_.all(), {.kind = DenseOptimizerKind::adamw, .weight_decay = options.weight_decay}),
        random_{derive_key(sizes.seed, "rq-vae batches")} {
    double sum = 0;
    for (const float x : vectors.values) sum += static_cast<double>(x) * x;
    scale_ = sum > 0 ? std::sqrt(static_cast<double>(vectors.values.size()) / sum) : 1;
  }

  TokenizedItems run() {
    std::vector<std::int64_t> order = all_items();
    begin_codebooks(order);
    Progress progress("tokenize", options_.epochs, "epochs");
    for (std::int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
      used_.assign(static_cast<std::size_t>(codebooks_.value.rows()), false);
      for (std::size_t at = 0; at < order.size(); at += static_cast<std::size_t>(options_.batch))
        step(std::span(order).subspan(at,
                                      std::min(order.size() - at, static_cast<std::size_t>(options_.batch))));
      if (epoch + 1 < options_.epochs) restart_unused();
      progress.advance_to(epoch + 1);
    }
    progress.finish("");
    TokenizedItems result = tokenize_all();
    for (const Parameter* const parameter : set_.all()) result.codebooks[parameter->name] = parameter->value;
    result.codebooks[kScale] = Tensor::from<float>({1}, std::vector{static_cast<float>(scale_)});
    return result;
  }

  TokenizedItems codes_by(const SafetensorsFile& codebooks) {
    for (Parameter* const parameter : set_.all()) codebooks.read(parameter->name, parameter->value);
    scale_ = static_cast<double>(codebooks.values<float>(kScale, {1}).front());
    return tokenize_all();
  }

 private:
  static constexpr const char* kScale = "scale";

  std::vector<std::int64_t> all_items() const {
    std::vector<std::int64_t> order(vectors_.items.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    return order;
  }
  // Codes of vectors: rows of the codebooks (B, L), their sums (B, d), and what is left before each level.
  struct Quantised {
    Tensor codes, sums;
    std::vector<std::vector<float>> left;  // [level](B, d)
  };

  Tensor rows_of(std::span<const std::int64_t> items) const {
    Tensor x = Tensor::empty({std::ssize(items), vectors_.width}, DType::f32);
    float* to = x.mutable_data<float>();
    for (const std::int64_t item : items)
      for (std::int64_t c = 0; c < vectors_.width; ++c)
        *to++ =
            static_cast<float>(scale_ * vectors_.values[static_cast<std::size_t>(item * vectors_.width + c)]);
    return x;
  }
  std::span<const float> codebook(std::int64_t level) const {
    const auto size = static_cast<std::size_t>(sizes_.codes * options_.code_width);
    return std::span(codebooks_.value.data<float>() + static_cast<std::size_t>(level) * size, size);
  }

  Quantised quantise(const Tensor& z) const {
    const std::int64_t n = z.rows(), d = options_.code_width;
    Quantised q{.codes = Tensor::empty({n, sizes_.levels}, DType::i32),
                .sums = Tensor::zeros({n, d}, DType::f32),
                .left = {}};
    std::vector<float> left(z.data<float>(), z.data<float>() + z.size()),
        distance(static_cast<std::size_t>(n));
    std::vector<std::int32_t> nearest(static_cast<std::size_t>(n));
    for (std::int64_t l = 0; l < sizes_.levels; ++l) {
      q.left.push_back(left);
      const std::span<const float> centers = codebook(l);
      find_nearest(left, centers, d, nearest, distance);
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t code = nearest[static_cast<std::size_t>(i)];
        q.codes.mutable_data<std::int32_t>()[i * sizes_.levels + l] =
            static_cast<std::int32_t>(l * sizes_.codes + code);
        for (std::int64_t c = 0; c < d; ++c) {
          const float x = centers[static_cast<std::size_t>(code * d + c)];
          left[static_cast<std::size_t>(i * d + c)] -= x;
          q.sums.mutable_data<float>()[i * d + c] += x;
        }
      }
    }
    return q;
  }

  Tensor encoded(std::span<const std::int64_t> items) const {
    Tape tape(false);
    return encoder_(tape, Variable::constant(rows_of(items))).value();
  }

  void begin_codebooks(std::span<const std::int64_t> all) {
    std::vector<float> left;
    const Tensor z = encoded(all);
    left.assign(z.data<float>(), z.data<float>() + z.size());
    Tensor rows = codebooks_.value;
    float* to = rows.mutable_data<float>();
    const auto d = static_cast<std::size_t>(options_.code_width);
    for (std::int64_t l = 0; l < sizes_.levels; ++l) {
      const KMeansResult level = kmeans(left, options_.code_width,
                                        {.clusters = sizes_.codes,
                                         .iterations = 10,
                                         .key = derive_key(sizes_.seed, fmt::format("level {}", l))});
      to = std::copy(level.centers.begin(), level.centers.end(), to);
      for (std::size_t i = 0; i < left.size(); ++i)
        left[i] -= level.centers[static_cast<std::size_t>(level.cluster[i / d]) * d + i % d];
    }
  }

  void step(std::span<const std::int64_t> items) {
    const Tensor x = rows_of(items);
    const auto n = static_cast<double>(items.size());
    set_.clear_gradients();
    Tape tape;
    const Variable z = encoder_(tape, Variable::constant(x));
    last_ = quantise(z.value());
    for (std::int64_t i = 0; i < last_.codes.size(); ++i)
      used_[static_cast<std::size_t>(last_.codes.data<std::int32_t>()[i])] = true;
    const Variable y = decoder_(tape, straight_through(tape, z, last_.sums));
    const Variable loss =
        ops::add(tape, squared_error(tape, y, x, 1 / (n * static_cast<double>(vectors_.width))),
                 quantisation_loss(tape, z, Variable(codebooks_), last_.codes, options_.commitment, 1 / n));
    tape.backward(loss);
    optimizer_.step(options_.learning_rate);
  }

  void restart_unused() {
    const std::int64_t d = options_.code_width, n = last_.codes.rows();
    Tensor rows = codebooks_.value;
    for (std::size_t row = 0; row < used_.size(); ++row) {
      if (used_[row]) continue;
      const auto level = row / static_cast<std::size_t>(sizes_.codes);
      const auto of = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(n)));
      std::copy_n(last_.left[level].begin() + of * d, d,
                  rows.mutable_data<float>() + static_cast<std::int64_t>(row) * d);
    }
  }

  TokenizedItems tokenize_all() const {
    const Quantised q = quantise(encoded(all_items()));
    TokenizedItems result;
    result.codes.items = vectors_.items;
    result.codes.sizes.assign(static_cast<std::size_t>(sizes_.levels), sizes_.codes);
    for (std::int64_t i = 0; i < q.codes.size(); ++i)
      result.codes.codes.push_back(static_cast<std::int32_t>(q.codes.data<std::int32_t>()[i] % sizes_.codes));
    result.last_residuals = q.left.back();
    const std::span<const float> last = codebook(sizes_.levels - 1);
    result.last_centers.assign(last.begin(), last.end());
    Tape tape(false);
    const Tensor y = decoder_(tape, Variable::constant(q.sums)).value();
    std::vector<float> left = vectors_.values;
    for (std::size_t i = 0; i < left.size(); ++i) left[i] -= static_cast<float>(y.data<float>()[i] / scale_);
    result.error = relative_error(vectors_, left);
    return result;
  }

  const ItemVectors& vectors_;
  const ResidualKMeansOptions& sizes_;
  const RqVaeOptions& options_;
  double scale_ = 1;  // of vectors: the mean of their squared numbers becomes 1
  ParameterSet set_;
  ActivatedMlp encoder_, decoder_;
  const Parameter& codebooks_;  // (L * C, d)
  DenseOptimizer optimizer_;
  RandomStream random_;
  Quantised last_;          // of the latest batch
  std::vector<bool> used_;  // in this epoch
};

}  // namespace

TokenizedItems rq_vae(const ItemVectors& vectors, const ResidualKMeansOptions& sizes,
                      const RqVaeOptions& options) {
  require(vectors.size() >= 1 && sizes.levels >= 1, "rq-vae: expected vectors and levels");
  return RqVae(vectors, sizes, options).run();
}

TokenizedItems rq_vae_codes(const ItemVectors& vectors, const ResidualKMeansOptions& sizes,
                            const RqVaeOptions& options, const SafetensorsFile& codebooks) {
  return RqVae(vectors, sizes, options).codes_by(codebooks);
}

}  // namespace hstu
