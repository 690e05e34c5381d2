#include "hstu/batching/catalogue_negatives.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {
namespace {

std::int32_t row_of(std::span<const std::int64_t> items, std::int64_t id) {
  const auto at = std::lower_bound(items.begin(), items.end(), id);
  require(at != items.end() && *at == id, "item {} is not among the {} items of the batch", id, items.size());
  return static_cast<std::int32_t>(at - items.begin());
}

// (P) how often each of `ids` is in `of`, whose items all are among them.
void count(std::span<const std::int64_t> of, std::span<const std::int64_t> ids,
           std::vector<std::int32_t>& counts) {
  for (const std::int64_t id : of) ++counts[static_cast<std::size_t>(row_of(ids, id))];
}

template <typename T>
void add_column(std::string_view name, const std::vector<T>& values, Batch& batch) {
  std::copy(values.begin(), values.end(), batch.add<T>(name, {std::ssize(values)}).begin());
}

}  // namespace

CatalogueDraws::CatalogueDraws(std::vector<std::int64_t> items) : items_(std::move(items)) {
  check(!items_.empty(), "negatives are drawn from the items of the dataset, and it has none");
}

void CatalogueDraws::draw_own(const BatchDraws& draws, std::int64_t sample, std::int64_t token,
                              std::span<std::int64_t> drawn) const {
  draws.of("negatives of a position").fill(size(), sample, token, drawn);
}

void CatalogueDraws::draw_shared(const BatchDraws& draws, std::span<std::int64_t> drawn) const {
  draws.of("negatives of a batch").fill(size(), 0, 0, drawn);
  for (std::int64_t& i : drawn) i = item(i);
}

ItemFrequencies::ItemFrequencies(std::vector<std::int64_t> ids, std::vector<std::int64_t> counts)
    : ids_(std::move(ids)), counts_(std::move(counts)) {
  require(ids_.size() == counts_.size() && std::is_sorted(ids_.begin(), ids_.end()),
          "frequencies of {} ids, which ascend, with {} counts", ids_.size(), counts_.size());
  total_ = static_cast<double>(std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}));
}

double ItemFrequencies::of(std::int64_t item) const {
  const auto at = std::lower_bound(ids_.begin(), ids_.end(), item);
  if (at == ids_.end() || *at != item) return 0;
  return static_cast<double>(counts_[static_cast<std::size_t>(at - ids_.begin())]) / total_;
}

PoolItems pool_items(std::span<const std::int64_t> targets, std::span<const std::int64_t> others,
                     std::span<const std::int64_t> drawn, const ItemFrequencies* frequencies) {
  PoolItems pool;
  for (const auto part : {targets, others, drawn}) pool.ids.insert(pool.ids.end(), part.begin(), part.end());
  std::sort(pool.ids.begin(), pool.ids.end());
  pool.ids.erase(std::unique(pool.ids.begin(), pool.ids.end()), pool.ids.end());
  pool.occurrences.resize(pool.ids.size());
  pool.draws.resize(pool.ids.size());
  count(targets, pool.ids, pool.occurrences);
  count(others, pool.ids, pool.occurrences);
  count(drawn, pool.ids, pool.draws);
  if (frequencies == nullptr) return pool;
  for (const std::int64_t id : pool.ids) pool.frequency.push_back(static_cast<float>(frequencies->of(id)));
  return pool;
}

void add_pool_columns(const PoolItems& pool, std::span<const std::int64_t> items, Batch& batch) {
  add_column(kPoolIdsColumn, pool.ids, batch);
  std::vector<std::int32_t> index;
  index.reserve(pool.ids.size());
  for (const std::int64_t id : pool.ids) index.push_back(row_of(items, id));
  add_column(kPoolIndexColumn, index, batch);
  add_column(kPoolOccurrencesColumn, pool.occurrences, batch);
  add_column(kPoolDrawsColumn, pool.draws, batch);
  if (!pool.frequency.empty()) add_column(kPoolFrequencyColumn, pool.frequency, batch);
}

void add_sampled_index(std::span<const std::int64_t> targets, std::span<const std::int64_t> negatives,
                       std::span<const std::int64_t> items, Batch& batch) {
  const std::size_t each = targets.empty() ? 0 : negatives.size() / targets.size();
  require(each * targets.size() == negatives.size(), "{} negatives for {} targets", negatives.size(),
          targets.size());
  const auto index = batch.add<std::int32_t>(kSampledIndexColumn,
                                             {std::ssize(targets), static_cast<std::int64_t>(each) + 1});
  for (std::size_t r = 0, at = 0; r < targets.size(); ++r) {
    index[at++] = row_of(items, targets[r]);
    for (const std::int64_t id : negatives.subspan(r * each, each)) index[at++] = row_of(items, id);
  }
}

}  // namespace hstu
