#include "hstu/objective/catalogue_ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/device/built_with_cuda.h"
#include "hstu/kernels/l2_normalise.h"
#include "hstu/tensor/tensor.h"

namespace hstu {
namespace {

constexpr float kShortestItem = 1e-6F;  // an item's norm is at least this
constexpr std::int64_t kNoItem = std::numeric_limits<std::int64_t>::max();

// Calls body with the context's stream as its device's type.
template <typename Body>
void with_stream(const Context& context, const Body& body) {
  if (context.device().is_host()) return body(HostStream{});
  if constexpr (kBuiltWithCuda) body(context.cuda());
}

// Values on the device of the context.
template <typename T>
Tensor on_device(const std::vector<T>& values, const Context& context) {
  const Tensor host = Tensor::from<T>({std::ssize(values)}, values);
  return context.device().is_host() ? host : host.copy(context);
}

template <typename T>
std::vector<T> values_of(const Tensor& tensor, const Context& context) {
  const Tensor host = tensor.to_host(context.stream);
  return {host.data<T>(), host.data<T>() + host.size()};
}

// Reads blocks of a rank's catalogue, as they are compared and where the context is; the latest stays.
class CatalogueBlocks {
 public:
  explicit CatalogueBlocks(const CatalogueScores& catalogue)
      : catalogue_(catalogue), first_bad_(on_device(std::vector{kNoItem}, catalogue.context)) {
    require(catalogue.rows.width >= 1 && catalogue.block_rows >= 1, "expected items of at least 1 number");
    const Shape shape{std::min(catalogue.block_rows, catalogue.rows.size), catalogue.rows.width};
    rows_ = Tensor::empty(shape, DType::f32, catalogue.context);
    unit_ = Tensor::empty(shape, DType::f32, catalogue.context);
    norm_ = Tensor::empty({shape.front()}, DType::f32, catalogue.context);
  }

  // visit(items, number of the first)
  template <typename Visit>
  void each(const Visit& visit) {
    const CatalogueRows& rows = catalogue_.rows;
    const bool on_host = catalogue_.context.device().is_host();
    for (std::int64_t first = 0; first < rows.size; first += catalogue_.block_rows) {
      const std::int64_t n = std::min(catalogue_.block_rows, rows.size - first);
      if (first != held_) read(first, n);
      visit(
          kernels::CatalogueItems{.n = n,
                                  .width = rows.width,
                                  .rows = compared().data<float>(),
                                  .ids = first + (on_host ? rows.ids : rows.device_ids.data<std::int64_t>())},
          first);
    }
  }
  // The same with all of a block in host memory.
  template <typename Visit>
  void each_on_host(const Visit& visit) {
    each([&](kernels::CatalogueItems items, std::int64_t first) {
      const Tensor rows = compared().row_range(0, items.n).to_host(catalogue_.context.stream);
      items.rows = rows.data<float>();
      items.ids = catalogue_.rows.ids + first;
      visit(items);
    });
  }

  // The first item with a value that is not finite; kNoItem: there is none among those read.
  std::int64_t bad_item() const {
    const Tensor first = first_bad_.to_host(catalogue_.context.stream);
    const std::int64_t at = first.data<std::int64_t>()[0];
    return at == kNoItem ? kNoItem : catalogue_.rows.ids[at];
  }

 private:
  const Tensor& compared() const { return catalogue_.unit ? unit_ : rows_; }

  void read(std::int64_t first, std::int64_t n) {
    Tensor block = rows_.row_range(0, n);
    catalogue_.rows.read(first, block);
    held_ = first;
    with_stream(catalogue_.context, [&](auto stream) {
      kernels::l2_normalise(kernels::L2Normalise<float>{.rows = n,
                                                        .width = catalogue_.rows.width,
                                                        .epsilon = kShortestItem,
                                                        .x = rows_.data<float>(),
                                                        .y = unit_.mutable_data<float>(),
                                                        .norm = norm_.mutable_data<float>()},
                            stream);
      kernels::find_not_finite({.n = n,
                                .first = first,
                                .norms = norm_.data<float>(),
                                .first_bad = first_bad_.mutable_data<std::int64_t>()},
                               stream);
    });
  }

  const CatalogueScores& catalogue_;
  std::int64_t held_ = -1;
  Tensor first_bad_;           // (1) i64
  Tensor rows_, unit_, norm_;  // (n, E), (n, E), (n)
};

// Queries where the context is.
struct QueriesOnDevice {
  Tensor vectors, excluded_offsets, excluded;
  kernels::CatalogueQueries view;

  QueriesOnDevice(const CatalogueQueryList& queries, const CatalogueScores& catalogue) {
    view.n = queries.size(catalogue.rows.width);
    vectors = on_device(queries.vectors, catalogue.context);
    view.vectors = vectors.data<float>();
    if (queries.excluded_offsets.empty()) return;
    excluded_offsets = on_device(queries.excluded_offsets, catalogue.context);
    excluded = on_device(queries.excluded, catalogue.context);
    view.excluded_offsets = excluded_offsets.data<std::int64_t>();
    view.excluded = excluded.data<std::int64_t>();
  }
};

kernels::CatalogueQueries view(const CatalogueQueryList& queries, std::int64_t width) {
  const bool any = !queries.excluded_offsets.empty();
  return {.n = queries.size(width),
          .vectors = queries.vectors.data(),
          .excluded_offsets = any ? queries.excluded_offsets.data() : nullptr,
          .excluded = queries.excluded.data()};
}

void check_finite(const CatalogueBlocks& blocks, Communicator& comm) {
  std::vector<std::int64_t> bad;
  if (blocks.bad_item() != kNoItem) bad.push_back(blocks.bad_item());
  bad = comm.all_gather(std::span<const std::int64_t>(bad));
  if (!bad.empty())
    throw NotFiniteError(fmt::format("the row of item {} has a value that is NaN, infinite or above 1e19",
                                     *std::min_element(bad.begin(), bad.end())));
}

}  // namespace

std::vector<std::int64_t> catalogue_ranks(const CatalogueScores& catalogue, const CatalogueQueryList& queries,
                                          const std::vector<std::int64_t>& targets, Communicator& comm) {
  const Context& context = catalogue.context;
  const QueriesOnDevice on(queries, catalogue);
  require(std::ssize(targets) == on.view.n, "expected a target for each of {} queries, found {}", on.view.n,
          targets.size());
  const std::size_t n = targets.size();
  Tensor scores = Tensor::zeros({on.view.n}, DType::f32, context),
         found = Tensor::zeros({on.view.n}, DType::u8, context), ids = on_device(targets, context);
  CatalogueBlocks blocks(catalogue);
  blocks.each([&](const kernels::CatalogueItems& items, std::int64_t /*first*/) {
    with_stream(context, [&](auto stream) {
      kernels::target_scores({.items = items,
                              .queries = on.view,
                              .targets = ids.data<std::int64_t>(),
                              .scores = scores.mutable_data<float>(),
                              .found = found.mutable_data<std::uint8_t>()},
                             stream);
    });
  });
  // One rank has the target: the other terms of the sum are zeros.
  std::vector<float> score = values_of<float>(scores, context);
  const std::vector<std::uint8_t> has = values_of<std::uint8_t>(found, context);
  comm.all_reduce_sum(std::span(score));
  std::vector<std::int32_t> owners(has.begin(), has.end());
  comm.all_reduce_sum(std::span(owners));
  std::vector<std::int64_t> sought = targets;
  for (std::size_t q = 0; q < n; ++q) {
    if (owners[q] > 0) continue;
    score[q] = -std::numeric_limits<float>::infinity();
    sought[q] = std::numeric_limits<std::int64_t>::max();
  }
  scores = on_device(score, context), ids = on_device(sought, context);
  Tensor better = Tensor::zeros({on.view.n}, DType::i64, context);
  blocks.each([&](const kernels::CatalogueItems& items, std::int64_t /*first*/) {
    with_stream(context, [&](auto stream) {
      kernels::count_better({.items = items,
                             .queries = on.view,
                             .targets = ids.data<std::int64_t>(),
                             .scores = scores.data<float>(),
                             .better = better.mutable_data<std::int64_t>()},
                            stream);
    });
  });
  check_finite(blocks, comm);
  std::vector<std::int64_t> ranks = values_of<std::int64_t>(better, context);
  comm.all_reduce_sum(std::span(ranks));
  for (std::int64_t& rank : ranks) ++rank;
  return ranks;
}

namespace {

using Lists = std::vector<std::vector<kernels::ScoredItem>>;

Lists top_on_gpu(const CatalogueScores& catalogue, const CatalogueQueryList& queries, std::int64_t k,
                 CatalogueBlocks& blocks) {
  const Context& context = catalogue.context;
  const QueriesOnDevice on(queries, catalogue);
  // Numbers of 64 bits.
  Tensor kept = Tensor::zeros({on.view.n, k}, DType::i64, context);
  auto* const keys = reinterpret_cast<std::uint64_t*>(kept.mutable_data<std::int64_t>());
  Tensor numbers = Tensor::empty({on.view.n, k}, DType::i32, context),
         scores = Tensor::empty({on.view.n, k}, DType::f32, context);
  blocks.each([&](const kernels::CatalogueItems& items, std::int64_t first) {
    if constexpr (kBuiltWithCuda)
      kernels::add_top_block({.items = items, .queries = on.view, .first = first, .k = k, .kept = keys},
                             context.cuda());
  });
  if constexpr (kBuiltWithCuda)
    kernels::read_top({.queries = on.view.n,
                       .k = k,
                       .kept = keys,
                       .items = numbers.mutable_data<std::int32_t>(),
                       .scores = scores.mutable_data<float>()},
                      context.cuda());
  const Tensor found = numbers.to_host(context.stream), of = scores.to_host(context.stream);
  Lists lists(static_cast<std::size_t>(on.view.n));
  parallel_blocks(on.view.n, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t q = begin; q < end; ++q) {
      const std::int32_t* const items = found.data<std::int32_t>() + q * k;
      const std::int64_t n = std::find(items, items + k, -1) - items;
      std::vector<kernels::ScoredItem>& list = lists[static_cast<std::size_t>(q)];
      list.reserve(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i)
        list.push_back({of.data<float>()[q * k + i], catalogue.rows.ids[items[i]]});
    }
  });
  return lists;
}

// Of this rank's items.
Lists top_here(const CatalogueScores& catalogue, const CatalogueQueryList& queries, std::int64_t k,
               CatalogueBlocks& blocks) {
  if (!catalogue.context.device().is_host() && k <= kernels::kMostTopItems)
    return top_on_gpu(catalogue, queries, k, blocks);
  const kernels::CatalogueQueries of = view(queries, catalogue.rows.width);
  kernels::TopItems top(of.n, k);
  blocks.each_on_host([&](const kernels::CatalogueItems& items) { top.add(items, of); });
  return top.take();
}

}  // namespace

std::vector<std::vector<kernels::ScoredItem>> catalogue_top(const CatalogueScores& catalogue,
                                                            const CatalogueQueryList& queries, std::int64_t k,
                                                            Communicator& comm) {
  CatalogueBlocks blocks(catalogue);
  Lists lists = top_here(catalogue, queries, k, blocks);
  check_finite(blocks, comm);
  if (comm.size() == 1) return lists;
  std::vector<float> scores;
  std::vector<std::int64_t> ids, counts;
  for (const std::vector<kernels::ScoredItem>& list : lists) {
    counts.push_back(std::ssize(list));
    for (const kernels::ScoredItem& item : list) {
      scores.push_back(item.score);
      ids.push_back(item.id);
    }
  }
  scores = comm.all_gather(std::span<const float>(scores));
  ids = comm.all_gather(std::span<const std::int64_t>(ids));
  counts = comm.all_gather(std::span<const std::int64_t>(counts));
  const std::int64_t n = queries.size(catalogue.rows.width);
  kernels::TopItems merged(n, k);
  std::size_t next = 0;
  for (std::size_t list = 0; list < counts.size(); ++list)
    for (std::int64_t i = 0; i < counts[list]; ++i, ++next)
      merged.add(static_cast<std::int64_t>(list) % n, {scores[next], ids[next]});
  return merged.take();
}

std::vector<float> catalogue_vectors(const CatalogueScores& catalogue) {
  std::vector<float> vectors;
  vectors.reserve(static_cast<std::size_t>(catalogue.rows.size * catalogue.rows.width));
  CatalogueBlocks blocks(catalogue);
  blocks.each_on_host([&](const kernels::CatalogueItems& items) {
    vectors.insert(vectors.end(), items.rows, items.rows + items.n * items.width);
  });
  check_finite(blocks, one_rank());
  return vectors;
}

}  // namespace hstu
