#include "hstu/objective/catalogue_ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "hstu/base/error.h"
#include "hstu/kernels/l2_normalise.h"
#include "hstu/tensor/tensor.h"

namespace hstu {
namespace {

constexpr float kShortestItem = 1e-6F;  // an item's norm is at least this
constexpr std::int64_t kNoItem = -1;

// Reads blocks of a rank's catalogue, on the host and as they are compared; the latest stays.
class CatalogueBlocks {
 public:
  explicit CatalogueBlocks(const CatalogueScores& catalogue) : catalogue_(catalogue) {
    require(catalogue.rows.width >= 1 && catalogue.block_rows >= 1, "expected items of at least 1 number");
  }

  template <typename Visit>
  void each(const Visit& visit) {
    for (std::int64_t first = 0; first < catalogue_.rows.size; first += catalogue_.block_rows) {
      if (first != held_) read(first);
      visit(kernels::CatalogueItems{.n = block_.rows(),
                                    .width = catalogue_.rows.width,
                                    .rows = catalogue_.unit ? unit_.data() : block_.data<float>(),
                                    .ids = catalogue_.rows.ids + first});
    }
  }

  // The first item with a value that is not finite; kNoItem: there is none among those read.
  std::int64_t bad_item() const { return bad_item_; }

 private:
  void read(std::int64_t first) {
    const CatalogueRows& rows = catalogue_.rows;
    const std::int64_t n = std::min(catalogue_.block_rows, rows.size - first);
    Tensor block = Tensor::empty({n, rows.width}, DType::f32, catalogue_.context);
    rows.read(first, block);
    block_ = block.to_host(catalogue_.context.stream);
    held_ = first;
    unit_.resize(static_cast<std::size_t>(n * rows.width));
    norm_.resize(static_cast<std::size_t>(n));
    kernels::l2_normalise<float>({.rows = n,
                                  .width = rows.width,
                                  .epsilon = kShortestItem,
                                  .x = block_.data<float>(),
                                  .y = unit_.data(),
                                  .norm = norm_.data()},
                                 HostStream{});
    const auto bad =
        std::find_if(norm_.begin(), norm_.end(), [](float norm) { return !std::isfinite(norm); });
    if (bad_item_ == kNoItem && bad != norm_.end()) bad_item_ = rows.ids[first + (bad - norm_.begin())];
  }

  const CatalogueScores& catalogue_;
  std::int64_t held_ = -1;
  std::int64_t bad_item_ = kNoItem;
  Tensor block_;                    // (n, E) on the host
  std::vector<float> unit_, norm_;  // (n, E), (n)
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
  const kernels::CatalogueQueries of = view(queries, catalogue.rows.width);
  require(std::ssize(targets) == of.n, "expected a target for each of {} queries, found {}", of.n,
          targets.size());
  const std::size_t n = targets.size();
  std::vector<float> scores(n, 0);
  std::vector<std::uint8_t> found(n, 0);
  CatalogueBlocks blocks(catalogue);
  blocks.each([&](const kernels::CatalogueItems& items) {
    kernels::target_scores({.items = items,
                            .queries = of,
                            .targets = targets.data(),
                            .scores = scores.data(),
                            .found = found.data()},
                           HostStream{});
  });
  // One rank has the target: the other terms of the sum are zeros.
  comm.all_reduce_sum(std::span(scores));
  std::vector<std::int32_t> owners(found.begin(), found.end());
  comm.all_reduce_sum(std::span(owners));
  std::vector<std::int64_t> sought = targets;
  for (std::size_t q = 0; q < n; ++q) {
    if (owners[q] > 0) continue;
    scores[q] = -std::numeric_limits<float>::infinity();
    sought[q] = std::numeric_limits<std::int64_t>::max();
  }
  std::vector<std::int64_t> better(n, 0);
  blocks.each([&](const kernels::CatalogueItems& items) {
    kernels::count_better({.items = items,
                           .queries = of,
                           .targets = sought.data(),
                           .scores = scores.data(),
                           .better = better.data()},
                          HostStream{});
  });
  check_finite(blocks, comm);
  comm.all_reduce_sum(std::span(better));
  for (std::int64_t& rank : better) ++rank;
  return better;
}

std::vector<std::vector<kernels::ScoredItem>> catalogue_top(const CatalogueScores& catalogue,
                                                            const CatalogueQueryList& queries, std::int64_t k,
                                                            Communicator& comm) {
  const kernels::CatalogueQueries of = view(queries, catalogue.rows.width);
  kernels::TopItems top(of.n, k);
  CatalogueBlocks blocks(catalogue);
  blocks.each([&](const kernels::CatalogueItems& items) { top.add(items, of); });
  check_finite(blocks, comm);
  if (comm.size() == 1) return top.take();
  std::vector<float> scores;
  std::vector<std::int64_t> ids, counts;
  for (const std::vector<kernels::ScoredItem>& list : top.take()) {
    counts.push_back(std::ssize(list));
    for (const kernels::ScoredItem& item : list) {
      scores.push_back(item.score);
      ids.push_back(item.id);
    }
  }
  scores = comm.all_gather(std::span<const float>(scores));
  ids = comm.all_gather(std::span<const std::int64_t>(ids));
  counts = comm.all_gather(std::span<const std::int64_t>(counts));
  kernels::TopItems merged(of.n, k);
  std::size_t next = 0;
  for (std::size_t list = 0; list < counts.size(); ++list)
    for (std::int64_t i = 0; i < counts[list]; ++i, ++next)
      merged.add(static_cast<std::int64_t>(list) % of.n, {scores[next], ids[next]});
  return merged.take();
}

std::vector<float> catalogue_vectors(const CatalogueScores& catalogue) {
  std::vector<float> vectors;
  vectors.reserve(static_cast<std::size_t>(catalogue.rows.size * catalogue.rows.width));
  CatalogueBlocks blocks(catalogue);
  blocks.each([&](const kernels::CatalogueItems& items) {
    vectors.insert(vectors.end(), items.rows, items.rows + items.n * items.width);
  });
  check_finite(blocks, one_rank());
  return vectors;
}

}  // namespace hstu
