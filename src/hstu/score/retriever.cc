#include "hstu/score/retriever.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/batching/all_items.h"
#include "hstu/objective/retrieval_columns.h"
#include "hstu/objective/retrieval_objective.h"
#include "hstu/score/needed_columns.h"

namespace hstu {
namespace {

// The items of the table's rows and of the histories: an item that training never touched has no row, and is
// read as rows begin.
std::vector<std::int64_t> catalogue_of(const EmbeddingTable& table, const Dataset& dataset) {
  std::vector<std::int64_t> ids = all_items(dataset);
  std::erase_if(ids, [&](std::int64_t id) { return id >= table.config().rows; });
  for (const auto& place : table.places_by_id()) ids.push_back(place.id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

const RetrievalObjective& retrieval_of(const Learner& learner) {
  const RetrievalObjective* const retrieval = learner.objective->retrieval();
  if (retrieval == nullptr)
    fail_usage(
        "a model of this kind scores candidates and has no vectors to find items by: name requests by "
        "--requests");
  return *retrieval;
}

}  // namespace

Retriever::Retriever(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset,
                     const Dataset& items, Task task, bool row_stable)
    : dataset_(dataset),
      needed_(context_of_events(options, dataset.manifest())),
      pass_(options, checkpoint, dataset, std::move(task), row_stable),
      lists_(pass_.learner().objective->lists()) {
  if (lists_ != nullptr) {
    items_ = lists_->items();
    return;
  }
  Learner& learner = pass_.learner();
  const RetrievalObjective& retrieval = retrieval_of(learner);
  items_ = catalogue_of(learner.tables[0], items);
  check(!items_.empty(), "{}: the model has no item: nothing can be found", checkpoint.path().string());
  learner.open_catalogues(items_, items);
  catalogue_ = retrieval.scores(
      {.catalogues = learner.catalogue_rows(false), .dataset = &items, .compute = learner.compute});
  blocks_.emplace(catalogue_, kept_by_server(catalogue_));
}

std::vector<std::int64_t> Retriever::contexts_of(const User& user) const {
  std::vector<std::int64_t> values(needed_.size(), 0);
  if (user.before.empty()) return values;
  for (std::size_t c = 0; c < values.size(); ++c) {
    if (!needed_[c]) continue;
    values[c] = user.events != nullptr
                    ? user.events->context[c].back()
                    : dataset_.context(dataset_.manifest().context[c])[user.before.latest()];
  }
  return values;
}

bool Retriever::is_trained(std::int64_t item) const {
  return lists_ != nullptr ? std::ranges::binary_search(items_, item)
                           : pass_.learner().tables[0].contains(item);
}

Retriever::Vectors Retriever::vectors(std::span<const User> users) {
  std::vector<Candidate> candidates;
  candidates.reserve(users.size());
  std::vector<std::vector<std::int64_t>> contexts;
  for (const User& user : users) contexts.push_back(contexts_of(user));
  for (const User& user : users)
    candidates.push_back({.name = std::ssize(candidates),
                          .is_anchor = false,
                          .user = user.user,
                          .item = items_.front(),  // any: what is asked for is not read
                          .time = user.time,
                          .before = user.before,
                          .events = user.events,
                          .context = contexts[candidates.size()]});
  const Tensor outputs = pass_.outputs(candidates);
  const auto sample = pass_.batch().values<std::int32_t>(retrieval::kTargetSample);
  Vectors found{.values = {}, .user = {sample.begin(), sample.end()}};
  if (found.user.empty()) return found;
  const Tensor vectors = outputs.to_host(pass_.learner().compute.stream);
  found.values.assign(vectors.data<float>(), vectors.data<float>() + vectors.size());
  return found;
}

std::vector<std::vector<kernels::ScoredItem>> Retriever::top(const CatalogueQueryList& queries,
                                                             std::int64_t k) {
  k = std::min(k, std::ssize(items_));
  if (blocks_) return catalogue_top(*blocks_, queries, k, one_rank());
  const std::size_t n = queries.excluded_offsets.size() - 1;
  std::vector<std::vector<kernels::ScoredItem>> found;
  for (std::size_t q = 0; q < n; ++q) {
    const std::size_t width = queries.vectors.size() / n;
    std::vector<kernels::ScoredItem> items =
        lists_->list(std::span(queries.vectors).subspan(q * width, width));
    const auto begin = queries.excluded.begin() + queries.excluded_offsets[q],
               end = queries.excluded.begin() + queries.excluded_offsets[q + 1];
    std::erase_if(items,
                  [&](const kernels::ScoredItem& item) { return std::binary_search(begin, end, item.id); });
    items.resize(std::min(items.size(), static_cast<std::size_t>(k)));
    found.push_back(std::move(items));
  }
  return found;
}

std::vector<float> Retriever::item_vectors() {
  return catalogue_vectors(catalogue_);
}

}  // namespace hstu
