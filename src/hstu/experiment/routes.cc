#include "hstu/experiment/routes.h"

#include <algorithm>
#include <span>

namespace hstu {

void add_routes(const std::vector<FeatureSpec>& features, const std::vector<RowOwners>& owners,
                Batch& batch) {
  const int size = owners.front().ranks;
  const auto ranks = static_cast<std::size_t>(size);
  std::int64_t bytes = static_cast<std::int64_t>(batch.slab().size());
  for (const FeatureSpec& feature : features) {
    const auto n = static_cast<std::int64_t>(batch.values<std::int64_t>(ids_column(feature.name)).size());
    bytes += Batch::route_bytes(n, size);
  }
  batch.reserve(bytes);  // the columns read below do not move
  std::vector<int> owner;
  std::vector<std::size_t> next(ranks);
  for (std::size_t t = 0; t < features.size(); ++t) {
    const FeatureSpec& feature = features[t];
    const auto ids = batch.values<std::int64_t>(ids_column(feature.name));
    const auto n = static_cast<std::int64_t>(ids.size());
    const Batch::NewRoute route = batch.add_route(n, size);
    std::fill(route.counts.begin(), route.counts.end(), 0);
    owner.clear();
    for (const std::int64_t id : ids) {
      owner.push_back(owners[t].by_row() ? owners[t].owner(id) : owners[t].rank);
      ++route.counts[static_cast<std::size_t>(owner.back())];
    }
    next.assign(ranks, 0);
    for (std::size_t r = 1; r < ranks; ++r)
      next[r] = next[r - 1] + static_cast<std::size_t>(route.counts[r - 1]);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::size_t at = next[static_cast<std::size_t>(owner[i])]++;
      route.ids[at] = ids[i];
      route.positions[at] = static_cast<std::int32_t>(i);
    }
    if (owners[t].by_column()) std::fill(route.counts.begin(), route.counts.end(), n);
  }
}

std::function<void(Batch&)> with_routes(const Learner& learner) {
  if (learner.tables.gpus() == nullptr || !learner.tables.is_distributed()) return {};
  std::vector<RowOwners> owners;
  for (std::size_t t = 0; t < learner.tables.size(); ++t) owners.push_back(learner.tables[t].owners());
  return
      [features = learner.model->features(), owners](Batch& batch) { add_routes(features, owners, batch); };
}

}  // namespace hstu
