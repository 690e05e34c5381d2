#include "hstu/objective/catalogue_ranks.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/objective/on_device.h"
#include "hstu/tensor/tensor.h"

namespace hstu {
namespace {

template <typename T>
std::vector<T> values_of(const Tensor& tensor, const Context& context) {
  const Tensor host = tensor.to_host(context.stream);
  return {host.data<T>(), host.data<T>() + host.size()};
}

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
  if (const std::optional<std::int64_t> item = blocks.bad_item()) bad.push_back(*item);
  bad = comm.all_gather(std::span<const std::int64_t>(bad));
  if (!bad.empty())
    throw NotFiniteError(fmt::format("the row of item {} has a value that is NaN, infinite or above 1e19",
                                     *std::min_element(bad.begin(), bad.end())));
}

}  // namespace

std::vector<CatalogueRank> catalogue_ranks(CatalogueBlocks& blocks, const CatalogueQueryList& queries,
                                           const std::vector<std::int64_t>& targets, Communicator& comm) {
  const Context& context = blocks.catalogue().context;
  const QueriesOnDevice on(queries, blocks.catalogue());
  require(std::ssize(targets) == on.view.n, "expected a target for each of {} queries, found {}", on.view.n,
          targets.size());
  const std::size_t n = targets.size();
  Tensor scores = Tensor::zeros({on.view.n}, DType::f32, context),
         found = Tensor::zeros({on.view.n}, DType::u8, context), ids = on_device(targets, context);
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
  Tensor better = Tensor::zeros({on.view.n}, DType::i64, context),
         excluded = Tensor::zeros({on.view.n}, DType::i64, context);
  blocks.each([&](const kernels::CatalogueItems& items, std::int64_t /*first*/) {
    with_stream(context, [&](auto stream) {
      kernels::count_better({.items = items,
                             .queries = on.view,
                             .targets = ids.data<std::int64_t>(),
                             .scores = scores.data<float>(),
                             .better = better.mutable_data<std::int64_t>(),
                             .excluded_better = excluded.mutable_data<std::int64_t>()},
                            stream);
    });
  });
  check_finite(blocks, comm);
  std::vector<std::int64_t> before = values_of<std::int64_t>(better, context),
                            seen = values_of<std::int64_t>(excluded, context);
  comm.all_reduce_sum(std::span(before));
  comm.all_reduce_sum(std::span(seen));
  std::vector<CatalogueRank> ranks;
  for (std::size_t q = 0; q < n; ++q)
    ranks.push_back(owners[q] > 0 ? CatalogueRank{before[q] + 1, before[q] + seen[q] + 1} : CatalogueRank{});
  return ranks;
}

std::vector<CatalogueRank> catalogue_ranks(const CatalogueScores& catalogue,
                                           const CatalogueQueryList& queries,
                                           const std::vector<std::int64_t>& targets, Communicator& comm) {
  CatalogueBlocks blocks(catalogue);
  return catalogue_ranks(blocks, queries, targets, comm);
}

namespace {

using Lists = std::vector<std::vector<kernels::ScoredItem>>;

Lists top_on_gpu(CatalogueBlocks& blocks, const CatalogueQueryList& queries, std::int64_t k) {
  const CatalogueScores& catalogue = blocks.catalogue();
  const Context& context = catalogue.context;
  const QueriesOnDevice on(queries, catalogue);
  // Numbers of 64 bits.
  Tensor kept = Tensor::zeros({on.view.n, k}, DType::i64, context);
  auto* const keys = reinterpret_cast<std::uint64_t*>(kept.mutable_data<std::int64_t>());
  Tensor numbers = Tensor::empty({on.view.n, k}, DType::i32, context),
         scores = Tensor::empty({on.view.n, k}, DType::f32, context);
  blocks.each_rounded([&](const kernels::CatalogueItems& items, std::int64_t first) {
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
Lists top_here(CatalogueBlocks& blocks, const CatalogueQueryList& queries, std::int64_t k) {
  const CatalogueScores& catalogue = blocks.catalogue();
  if (!catalogue.context.device().is_host() && k <= kernels::kMostTopItems)
    return top_on_gpu(blocks, queries, k);
  const kernels::CatalogueQueries of = view(queries, catalogue.rows.width);
  kernels::TopItems top(of.n, k);
  blocks.each_on_host([&](const kernels::CatalogueItems& items) { top.add(items, of); });
  return top.take();
}

}  // namespace

std::vector<std::vector<kernels::ScoredItem>> catalogue_top(CatalogueBlocks& blocks,
                                                            const CatalogueQueryList& queries, std::int64_t k,
                                                            Communicator& comm) {
  Lists lists = top_here(blocks, queries, k);
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
  const std::int64_t n = queries.size(blocks.catalogue().rows.width);
  kernels::TopItems merged(n, k);
  std::size_t next = 0;
  for (std::size_t list = 0; list < counts.size(); ++list)
    for (std::int64_t i = 0; i < counts[list]; ++i, ++next)
      merged.add(static_cast<std::int64_t>(list) % n, {scores[next], ids[next]});
  return merged.take();
}

std::vector<std::vector<kernels::ScoredItem>> catalogue_top(const CatalogueScores& catalogue,
                                                            const CatalogueQueryList& queries, std::int64_t k,
                                                            Communicator& comm) {
  CatalogueBlocks blocks(catalogue);
  return catalogue_top(blocks, queries, k, comm);
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
