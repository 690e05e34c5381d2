#include "hstu/experiment/routes.h"

#include <string>

namespace hstu {
namespace {

std::string sent_column(const FeatureSpec& feature) {
  return feature.name + ".sent";
}
std::string places_column(const FeatureSpec& feature) {
  return feature.name + ".places";
}
std::string owned_column(const FeatureSpec& feature) {
  return feature.name + ".owned";
}

}  // namespace

void add_routes(const std::vector<FeatureSpec>& features, const std::vector<RowOwners>& owners,
                Batch& batch) {
  const int size = owners.front().ranks;
  const auto ranks = static_cast<std::size_t>(size);
  std::int64_t bytes = static_cast<std::int64_t>(batch.slab().size());
  for (const FeatureSpec& feature : features) {
    const auto n = static_cast<std::int64_t>(batch.values<std::int64_t>(ids_column(feature.name)).size());
    bytes += Batch::column_bytes<std::int64_t>(n) + Batch::column_bytes<std::int32_t>(n) +
             Batch::column_bytes<std::int64_t>(size);
  }
  batch.reserve(bytes);  // the columns read below do not move
  std::vector<int> owner;
  std::vector<std::size_t> next(ranks);
  for (std::size_t t = 0; t < features.size(); ++t) {
    const FeatureSpec& feature = features[t];
    const auto ids = batch.values<std::int64_t>(ids_column(feature.name));
    const auto n = static_cast<std::int64_t>(ids.size());
    const auto sent = batch.add<std::int64_t>(sent_column(feature), {n});
    const auto places = batch.add<std::int32_t>(places_column(feature), {n});
    const auto owned = batch.add<std::int64_t>(owned_column(feature), {size});
    std::fill(owned.begin(), owned.end(), 0);
    owner.clear();
    for (const std::int64_t id : ids) {
      owner.push_back(owners[t].by_row() ? owners[t].owner(id) : owners[t].rank);
      ++owned[static_cast<std::size_t>(owner.back())];
    }
    next.assign(ranks, 0);
    for (std::size_t r = 1; r < ranks; ++r) next[r] = next[r - 1] + static_cast<std::size_t>(owned[r - 1]);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::size_t at = next[static_cast<std::size_t>(owner[i])]++;
      sent[at] = ids[i];
      places[at] = static_cast<std::int32_t>(i);
    }
    if (owners[t].by_column()) std::fill(owned.begin(), owned.end(), n);
  }
}

std::function<void(Batch&)> with_routes(const Learner& learner) {
  if (learner.tables.gpus() == nullptr || !learner.tables.moves_rows()) return {};
  std::vector<RowOwners> owners;
  for (std::size_t t = 0; t < learner.tables.size(); ++t) owners.push_back(learner.tables[t].owners());
  return
      [features = learner.model->features(), owners](Batch& batch) { add_routes(features, owners, batch); };
}

std::vector<Route> routes_of(const std::vector<FeatureSpec>& features, const Batch& batch) {
  std::vector<Route> routes;
  routes.reserve(features.size());
  for (const FeatureSpec& feature : features)
    routes.push_back({batch.tensor(sent_column(feature)), batch.tensor(places_column(feature)),
                      batch.host_tensor(sent_column(feature)),
                      batch.values<std::int64_t>(owned_column(feature))});
  return routes;
}

}  // namespace hstu
