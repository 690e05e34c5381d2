#include "hstu/loss/catalogue_softmax.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/kernels/catalogue_softmax.h"
#include "hstu/kernels/convert.h"
#include "hstu/kernels/l2_normalise.h"
#include "hstu/loss/bounded_softmax.h"
#include "hstu/loss/rank_rows.h"
#include "hstu/ops/op.h"

namespace hstu::loss {
namespace {

using ops::Operation;

constexpr std::int64_t kBlockItems = 1024, kGpuBlockItems = 2048;

std::int64_t items_of_block(std::int64_t items, const Context& context) {
  return std::min(context.device().is_host() ? kBlockItems : kGpuBlockItems, items);
}

// Some items, whose memory the next block takes over.
struct Block {
  std::int64_t first = 0;
  Tensor raw;    // (n, E) as they are read
  Tensor norms;  // (n) of raw, or undefined
  Tensor rows;   // (n, E) in the type of vectors, with norm 1 where that is asked for
};

// The blocks of a catalogue, one after the other. T: the type of vectors.
template <typename T>
class Blocks {
 public:
  Blocks(const CatalogueRows& items, bool unit, const Context& context)
      : items_(items), unit_(unit), is_dry_(context.memory->dry() != nullptr) {
    const Shape shape{items_of_block(items.size, context), items.width};
    raw_ = Tensor::empty(shape, dtype_of<Sum>(), context);
    unit_rows_ = raw_;
    if (unit) {
      unit_rows_ = Tensor::empty(shape, dtype_of<Sum>(), context);
      norms_ = Tensor::empty({shape.front()}, dtype_of<Sum>(), context);
    }
    rows_ = std::is_same_v<T, Sum> ? unit_rows_ : Tensor::empty(shape, dtype_of<T>(), context);
  }

  template <typename Stream, typename Body>
  void for_each(Stream stream, const Body& body) const {
    for (std::int64_t first = 0; first < items_.size; first += raw_.rows()) {
      const std::int64_t n = std::min(raw_.rows(), items_.size - first);
      Block block{first, raw_.row_range(0, n), {}, rows_.row_range(0, n)};
      if (!is_dry_) items_.read(first, block.raw);
      if (unit_) normalise(block, stream);
      if constexpr (!std::is_same_v<T, Sum>)
        kernels::convert(kernels::Convert<Sum, T>{.size = n * items_.width,
                                                  .x = unit_rows_.data<Sum>(),
                                                  .y = {.to = block.rows.template mutable_data<T>()}},
                         stream);
      body(block);
    }
  }

 private:
  using Sum = Accumulator<T>;

  template <typename Stream>
  void normalise(Block& block, Stream stream) const {
    const std::int64_t n = block.raw.rows();
    block.norms = norms_.row_range(0, n);
    Tensor unit = unit_rows_.row_range(0, n);
    kernels::l2_normalise(kernels::L2Normalise<Sum>{.rows = n,
                                                    .width = items_.width,
                                                    .epsilon = Sum(kUnitEpsilon),
                                                    .x = block.raw.data<Sum>(),
                                                    .y = unit.mutable_data<Sum>(),
                                                    .norm = block.norms.mutable_data<Sum>()},
                          stream);
  }

  const CatalogueRows& items_;
  bool unit_, is_dry_;
  Tensor raw_, unit_rows_, norms_, rows_;
};

// The positions of all ranks against the items of this one: what the backward pass keeps of the forward pass.
struct Meeting {
  RankRows ranks;
  Tensor vectors, numbers;  // (T, E); (T) i64, of the targets in `items`
  Tensor log_sum;           // (T)
  Tensor weights;           // (T, 1) f32, or undefined
  CatalogueRows items;
  SoftmaxOptions options;
  double factor;
  Tensor bias;             // (V) or undefined
  BoundedSoftmax bounded;  // its vectors are undefined: not used
};

template <typename T, typename Stream>
constexpr bool kMayBeBounded = std::is_same_v<T, BFloat16> && !std::is_same_v<Stream, HostStream>;

template <typename T>
kernels::CatalogueBlock<T> meets(const Meeting& m, const Block& block) {
  return {.positions = m.vectors.rows(),
          .items = block.rows.rows(),
          .width = m.items.width,
          .first = block.first,
          .scale = static_cast<Accumulator<T>>(m.options.scale),
          .vectors = m.vectors.data<T>(),
          .rows = block.rows.data<T>(),
          .bias = m.bias.defined() ? m.bias.data<Accumulator<T>>() + block.first : nullptr,
          .targets = m.numbers.data<std::int64_t>()};
}

template <typename Sum>
kernels::SoftmaxPart<Sum>* parts_in(Tensor& parts) {
  return reinterpret_cast<kernels::SoftmaxPart<Sum>*>(parts.mutable_data<Sum>());
}

// What the positions of this rank know of the items of all ranks: parts (R, 3), relative to `largest` (T, 1).
template <typename Sum, typename Stream>
Tensor over_ranks(const RankRows& ranks, Tensor& largest, Tensor& parts, Stream stream) {
  if (ranks.ranks() == 1) return parts;
  const Tensor each = ranks.of_all_ranks(largest);
  kernels::rescale_softmax(kernels::SoftmaxRescale<Sum>{.positions = largest.rows(),
                                                        .ranks = ranks.ranks(),
                                                        .rank = ranks.rank(),
                                                        .largest_of_ranks = each.data<Sum>(),
                                                        .largest = largest.mutable_data<Sum>(),
                                                        .parts = parts_in<Sum>(parts)},
                           stream);
  return ranks.scattered_sum(parts);
}

const float* weights_of(const Tensor& weights) {
  return weights.defined() ? weights.data<float>() : nullptr;
}

template <typename Sum>
void check_found(std::string_view name, Tensor& parts, const Tensor& targets) {
  for (std::int64_t r = 0; r < targets.size(); ++r)
    check(parts_in<Sum>(parts)[r].found == Sum(1),
          "{}: item {} is to be predicted, and the catalogue does not have it: take the catalogue "
          "from the "
          "same dataset as the samples",
          name, targets.data<std::int64_t>()[r]);
}

template <typename T, typename Stream>
void add_items(Meeting& m, Tensor& largest, Tensor& parts, const Context& context, Stream stream) {
  using Sum = Accumulator<T>;
  if constexpr (kMayBeBounded<T, Stream>) {
    if (!m.bias.defined() && Bounded<Stream>::takes(m.items, m.options, stream)) {
      m.bounded =
          Bounded<Stream>::forward(m.vectors, m.numbers, m.items, m.options, largest, parts, context, stream);
      return;
    }
  }
  Blocks<T>(m.items, m.options.unit, context).for_each(stream, [&](const Block& block) {
    kernels::add_softmax_block(kernels::SoftmaxSums<T>{.block = meets<T>(m, block),
                                                       .largest = largest.mutable_data<Sum>(),
                                                       .parts = parts_in<Sum>(parts)},
                               stream);
  });
}

template <typename T, typename Stream>
Tensor forward(Meeting& m, std::string_view name, const Tensor& targets, const Context& context,
               Stream stream) {
  using Sum = Accumulator<T>;
  const DType type = accumulator_of(dtype_of<T>());
  const std::int64_t n = m.vectors.rows();
  const Tensor all = m.ranks.gathered_ids(targets);
  kernels::find_ids(
      kernels::FindIds{
          .wanted_count = n,
          .size = m.items.size,
          .wanted = all.data<std::int64_t>(),
          .ids = m.items.device_ids.defined() ? m.items.device_ids.data<std::int64_t>() : m.items.ids,
          .numbers = m.numbers.mutable_data<std::int64_t>()},
      stream);
  Tensor largest = Tensor::empty({n, 1}, type, context), parts = Tensor::empty({n, 3}, type, context);
  kernels::start_softmax(
      kernels::StartSoftmax<Sum>{
          .positions = n, .largest = largest.mutable_data<Sum>(), .parts = parts_in<Sum>(parts)},
      stream);
  add_items<T>(m, largest, parts, context, stream);
  Tensor mine = over_ranks<Sum>(m.ranks, largest, parts, stream);
  if constexpr (std::is_same_v<Stream, HostStream>) check_found<Sum>(name, mine, targets);
  Tensor log_sum = Tensor::empty({targets.size(), 1}, type, context),
         loss = Tensor::empty({1}, type, context);
  kernels::softmax_loss(kernels::SoftmaxLoss<Sum>{.positions = targets.size(),
                                                  .factor = m.factor,
                                                  .largest = largest.data<Sum>() + m.ranks.first(),
                                                  .parts = parts_in<Sum>(mine),
                                                  .weights = weights_of(m.options.weights),
                                                  .log_sum = log_sum.mutable_data<Sum>(),
                                                  .loss = loss.mutable_data<Sum>()},
                        stream);
  m.log_sum = m.ranks.gathered(log_sum);
  return loss;
}

// The gradient of rows with norm 1 becomes that of the raw rows, added to `to` (n, E).
template <typename T, typename Stream>
void add_to_rows(const Block& block, const Tensor& drows, Tensor to, bool unit, Stream stream) {
  const kernels::Gradient<T> gradient{to.mutable_data<T>(), true};
  if (!unit)
    return kernels::pass_gradient(
        kernels::PassGradient<T>{.size = to.size(), .dy = drows.data<T>(), .dx = gradient}, stream);
  kernels::l2_normalise_backward(kernels::L2NormaliseBackward<T>{.rows = to.rows(),
                                                                 .width = to.cols(),
                                                                 .epsilon = Accumulator<T>(kUnitEpsilon),
                                                                 .x = block.raw.data<T>(),
                                                                 .norm = block.norms.data<Accumulator<T>>(),
                                                                 .dy = drows.data<T>(),
                                                                 .dx = gradient},
                                 stream);
}

// dvectors (R, E) in the type of sums becomes the gradient of `vectors`, in theirs.
template <typename T, typename Stream>
void pass_on_sums(const Tensor& dvectors, const Variable& vectors, const Context& context, Stream stream) {
  using Sum = Accumulator<T>;
  if constexpr (std::is_same_v<T, Sum>)
    ops::pass_on<T>(dvectors, vectors, context, stream);
  else
    kernels::convert(
        kernels::Convert<Sum, T>{
            .size = dvectors.size(), .x = dvectors.data<Sum>(), .y = ops::gradient_of<T>(vectors, context)},
        stream);
}

// The gradient of the vectors of all ranks by this rank's items, in the type of sums; undefined if it is not
// needed. That of the items is added to `to_items`, if it is defined.
template <typename T, typename Stream>
Tensor gradients(const Meeting& m, const Tensor& dloss, bool of_vectors, Tensor to_items,
                 const Context& context, Stream stream) {
  using Sum = Accumulator<T>;
  if constexpr (kMayBeBounded<T, Stream>) {
    if (m.bounded.vectors.defined())
      return Bounded<Stream>::backward(m.bounded, m.numbers, m.items, m.options, m.log_sum, dloss, m.factor,
                                       to_items, context, stream);
  }
  Tensor dvectors, drows;
  if (of_vectors) dvectors = Tensor::zeros({m.vectors.rows(), m.items.width}, dtype_of<Sum>(), context);
  if (to_items.defined())
    drows = Tensor::empty({items_of_block(m.items.size, context), m.items.width}, dtype_of<Sum>(), context);
  Blocks<T>(m.items, m.options.unit, context).for_each(stream, [&](const Block& block) {
    kernels::softmax_block_gradients(
        kernels::SoftmaxGradients<T>{.block = meets<T>(m, block),
                                     .log_sum = m.log_sum.data<Sum>(),
                                     .dloss = dloss.data<Sum>(),
                                     .factor = m.factor,
                                     .weights = weights_of(m.weights),
                                     .dvectors = dvectors.defined() ? dvectors.mutable_data<Sum>() : nullptr,
                                     .drows = drows.defined() ? drows.mutable_data<Sum>() : nullptr},
        stream);
    const std::int64_t n = block.rows.rows();
    if (drows.defined())
      add_to_rows<Sum>(block, drows.row_range(0, n), to_items.row_range(block.first, block.first + n),
                       m.options.unit, stream);
  });
  return dvectors;
}

template <typename T, typename Stream>
void backward(const Meeting& m, const Tensor& dloss, const Variable& vectors, const Context& context,
              Stream stream) {
  const Tensor dvectors = gradients<T>(m, dloss, vectors.needs_gradient(),
                                       m.items.gradient ? m.items.gradient() : Tensor(), context, stream);
  if (vectors.needs_gradient()) pass_on_sums<T>(m.ranks.scattered_sum(dvectors), vectors, context, stream);
}

}  // namespace

Variable catalogue_softmax(Tape& tape, const Variable& vectors, const Tensor& targets,
                           const CatalogueRows& items, const CatalogueSoftmax& options, double divisor) {
  const Context& context = tape.context();
  ops::check_devices<Operation::catalogue_softmax>(context, vectors, targets, options.softmax.weights);
  require(vectors.cols() == items.width && vectors.rows() == targets.size(),
          "{}: {} targets and a catalogue of width {}, for vectors {}", options.name, targets.size(),
          items.width, ShapeText{vectors.value().shape()});
  const DType type = vectors.value().dtype();
  RankRows ranks(context, vectors.rows());
  const Tensor all = ranks.gathered(vectors.value());
  Tensor all_weights = options.softmax.weights;
  if (all_weights.defined()) {
    require(all_weights.size() == vectors.rows(), "{}: expected {} weights, found {}", options.name,
            vectors.rows(), all_weights.size());
    all_weights = ranks.gathered(all_weights.reshaped({vectors.rows(), 1}));
  }
  const auto meeting =
      std::make_shared<Meeting>(Meeting{.ranks = std::move(ranks),
                                        .vectors = all,
                                        .numbers = Tensor::empty({all.rows()}, DType::i64, context),
                                        .log_sum = {},
                                        .weights = all_weights,
                                        .items = items,
                                        .options = options.softmax,
                                        .factor = 1 / divisor,
                                        .bias = options.bias,
                                        .bounded = {}});
  Tensor loss = Tensor::empty({1}, accumulator_of(type), context);
  ops::dispatch<Operation::catalogue_softmax>(context, type, [&]<typename T>(auto stream) {
    loss = forward<T>(*meeting, options.name, targets, context, stream);
  });
  return tape.record(loss, {vectors, options.rows}, [=, finish = options.finish](const Tensor& dloss) {
    ops::dispatch<Operation::catalogue_softmax>(context, type, [&]<typename T>(auto stream) {
      backward<T>(*meeting, dloss, vectors, context, stream);
    });
    if (finish) finish();
  });
}

Variable full_softmax(Tape& tape, const Variable& vectors, const Tensor& targets, const CatalogueRows& items,
                      const SoftmaxOptions& options, double divisor) {
  return catalogue_softmax(tape, vectors, targets, items,
                           {.name = "full_softmax", .softmax = options, .bias = {}, .rows = {}, .finish = {}},
                           divisor);
}

Variable full_softmax(Tape& tape, const Variable& vectors, const Tensor& targets, const CatalogueRows& items,
                      const Variable& rows, const SoftmaxOptions& options, double divisor) {
  const Context& context = tape.context();
  require(rows.rows() == items.size, "full_softmax: expected {} rows of items, found {}", items.size,
          rows.rows());
  CatalogueRows computed = items;
  computed.read = [rows, context](std::int64_t first, Tensor& block) {
    block.copy_from(rows.value().row_range(first, first + block.rows()), context.stream);
  };
  computed.gradient = nullptr;
  if (rows.needs_gradient())
    computed.gradient = [rows, context] {
      GradientSlot slot = rows.gradient_slot(context);
      if (!slot.accumulate) slot.tensor.fill_zero(context.stream);
      return slot.tensor;
    };
  return catalogue_softmax(
      tape, vectors, targets, computed,
      {.name = "full_softmax", .softmax = options, .bias = {}, .rows = rows, .finish = {}}, divisor);
}

}  // namespace hstu::loss
