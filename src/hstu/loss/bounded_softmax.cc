#include "hstu/loss/bounded_softmax.h"

#include <algorithm>

#include "hstu/kernels/dry.h"
#include "hstu/kernels/exp_sums.h"

namespace hstu::loss {
namespace {

// Exponents less the bound are between this times -2 and 0: their sums keep the precision of floats.
constexpr double kMostBound = 40;
constexpr double kRounding = 1.01;  // of vectors and items to bfloat16
// Items of a block: as many tiles as an H200 computes at once, or twice as many where few positions leave
// memory for it.
constexpr std::int64_t kBlock = 132 * kernels::kExpSumOwn, kFewPositions = 32768;

double bound_of(const SoftmaxOptions& options) {
  return kRounding * options.scale * options.longest;
}

// Blocks of items as the sums read them.
class UnitBlocks {
 public:
  UnitBlocks(const CatalogueRows& items, std::int64_t positions, const Context& context)
      : items_(items), is_dry_(context.memory->dry() != nullptr) {
    rows_ = std::min(items.size, positions <= kFewPositions ? 2 * kBlock : kBlock);
    raw_ = Tensor::empty({rows_, items.width}, DType::f32, context);
    norms_ = Tensor::empty({rows_}, DType::f32, context);
    unit_ = Tensor::empty({rows_, kernels::padded_width(items.width)}, DType::bf16, context);
  }
  std::int64_t rows() const { return rows_; }

  // body(first, n, raw rows, norms, unit rows)
  template <typename Stream, typename Body>
  void each(Stream stream, const Body& body) {
    for (std::int64_t first = 0; first < items_.size; first += rows_) {
      const std::int64_t n = std::min(rows_, items_.size - first);
      Tensor block = raw_.row_range(0, n);
      if (!is_dry_) items_.read(first, block);
      kernels::unit_rows(kernels::UnitRows{.rows = n,
                                           .width = items_.width,
                                           .padded = unit_.cols(),
                                           .epsilon = static_cast<float>(kUnitEpsilon),
                                           .x = raw_.data<float>(),
                                           .norms = norms_.mutable_data<float>(),
                                           .unit = unit_.mutable_data<BFloat16>()},
                         stream);
      body(first, n, raw_.data<float>(), norms_.data<float>(), unit_.data<BFloat16>());
    }
  }

 private:
  const CatalogueRows& items_;
  bool is_dry_;
  std::int64_t rows_;
  Tensor raw_, norms_, unit_;
};

kernels::OwnItems own_items(const BoundedSoftmax& of, const Tensor& numbers, const CatalogueRows& items,
                            std::int64_t first, std::int64_t n, const BFloat16* rows) {
  return {.positions = of.vectors.rows(),
          .items = n,
          .first = first,
          .width = items.width,
          .padded = of.vectors.cols(),
          .targets = numbers.data<std::int64_t>(),
          .vectors = of.vectors.data<BFloat16>(),
          .rows = rows};
}

kernels::SoftmaxPart<float>* parts_in(Tensor& parts) {
  return reinterpret_cast<kernels::SoftmaxPart<float>*>(parts.mutable_data<float>());
}

}  // namespace

template <typename Stream>
bool Bounded<Stream>::takes(const CatalogueRows& items, const SoftmaxOptions& options, Stream stream) {
  return !options.weights.defined() && options.unit && options.longest > 0 &&
         bound_of(options) <= kMostBound && items.width >= 1 && kernels::padded_width(items.width) > 0 &&
         kernels::has_exp_sums(stream);
}

template <typename Stream>
BoundedSoftmax Bounded<Stream>::forward(const Tensor& vectors, const Tensor& numbers,
                                        const CatalogueRows& items, const SoftmaxOptions& options,
                                        Tensor& largest, Tensor& parts, const Context& context,
                                        Stream stream) {
  const std::int64_t n = vectors.rows(), padded = kernels::padded_width(items.width);
  const auto zeros = [&](Shape shape) { return Tensor::zeros(shape, DType::f32, context); };
  BoundedSoftmax of{.vectors = Tensor::empty({n, padded}, DType::bf16, context),
                    .totals = zeros({n}),
                    .rounded = zeros({n}),
                    .sums = zeros({n, items.width}),
                    .shift = bound_of(options)};
  kernels::weigh_rows(kernels::WeighRows{.rows = n,
                                         .width = items.width,
                                         .padded = padded,
                                         .from = vectors.data<BFloat16>(),
                                         .to = of.vectors.mutable_data<BFloat16>()},
                      stream);
  UnitBlocks(items, n, context)
      .each(stream, [&](std::int64_t first, std::int64_t count, const float* /*raw*/, const float* /*norms*/,
                        const BFloat16* unit) {
        kernels::exp_sums(kernels::ExpSums{.rows = n,
                                           .others = count,
                                           .width = items.width,
                                           .padded = padded,
                                           .scale = options.scale,
                                           .shift = of.shift,
                                           .own = of.vectors.data<BFloat16>(),
                                           .other = unit,
                                           .value = unit,
                                           .adds = true,
                                           .sums = of.sums.mutable_data<float>(),
                                           .totals = of.totals.mutable_data<float>(),
                                           .rounded = of.rounded.mutable_data<float>()},
                          stream);
        kernels::OwnItems own = own_items(of, numbers, items, first, count, unit);
        own.scale = options.scale;
        kernels::own_logits(kernels::OwnLogits{.own = own, .parts = parts_in(parts)}, stream);
      });
  kernels::take_totals(kernels::TakeTotals{.positions = n,
                                           .shift = of.shift,
                                           .totals = of.totals.data<float>(),
                                           .largest = largest.mutable_data<float>(),
                                           .parts = parts_in(parts)},
                       stream);
  return of;
}

template <typename Stream>
Tensor Bounded<Stream>::backward(const BoundedSoftmax& of, const Tensor& numbers, const CatalogueRows& items,
                                 const SoftmaxOptions& options, const Tensor& log_sum, const Tensor& dloss,
                                 double factor, const Tensor& to_items, const Context& context,
                                 Stream stream) {
  const std::int64_t n = of.vectors.rows(), width = items.width, padded = of.vectors.cols();
  const double times = factor * options.scale;
  Tensor dvectors = of.sums;
  kernels::position_gradients(kernels::PositionGradients{.positions = n,
                                                         .width = width,
                                                         .shift = of.shift,
                                                         .factor = times,
                                                         .sums = of.sums.data<float>(),
                                                         .totals = of.totals.data<float>(),
                                                         .rounded = of.rounded.data<float>(),
                                                         .log_sum = log_sum.data<float>(),
                                                         .dloss = dloss.data<float>(),
                                                         .dvectors = dvectors.mutable_data<float>()},
                              stream);
  UnitBlocks blocks(items, n, context);
  Tensor weighed, drows;
  if (to_items.defined()) {
    weighed = Tensor::empty({n, padded}, DType::bf16, context);
    kernels::weigh_rows(kernels::WeighRows{.rows = n,
                                           .width = padded,
                                           .padded = padded,
                                           .shift = of.shift,
                                           .log_sum = log_sum.data<float>(),
                                           .from = of.vectors.data<BFloat16>(),
                                           .to = weighed.mutable_data<BFloat16>()},
                        stream);
    drows = Tensor::empty({blocks.rows(), width}, DType::f32, context);
  }
  blocks.each(stream, [&](std::int64_t first, std::int64_t count, const float* raw, const float* norms,
                          const BFloat16* unit) {
    kernels::own_item_gradients(
        kernels::OwnItemGradients{.own = own_items(of, numbers, items, first, count, unit),
                                  .factor = times,
                                  .dloss = dloss.data<float>(),
                                  .dvectors = dvectors.mutable_data<float>()},
        stream);
    if (!to_items.defined()) return;
    kernels::exp_sums(kernels::ExpSums{.rows = count,
                                       .others = n,
                                       .width = width,
                                       .padded = padded,
                                       .scale = options.scale,
                                       .shift = of.shift,
                                       .own = unit,
                                       .other = of.vectors.data<BFloat16>(),
                                       .value = weighed.data<BFloat16>(),
                                       .sums = drows.mutable_data<float>(),
                                       .targets = numbers.data<std::int64_t>(),
                                       .log_sum = log_sum.data<float>(),
                                       .first = first},
                      stream);
    kernels::row_gradients(
        kernels::RowGradients{.rows = count,
                              .width = width,
                              .epsilon = static_cast<float>(kUnitEpsilon),
                              .factor = times,
                              .dloss = dloss.data<float>(),
                              .x = raw,
                              .norms = norms,
                              .g = drows.data<float>(),
                              .to = to_items.row_range(first, first + count).mutable_data<float>()},
        stream);
  });
  return dvectors;
}

template struct Bounded<DryStream>;
#ifdef HSTU_WITH_CUDA
template struct Bounded<CudaStream>;
#endif

}  // namespace hstu::loss
