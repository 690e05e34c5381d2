#include "hstu/embedding/saved_table.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/float16.h"

namespace hstu {
namespace {

// What a table keeps from one section to the next. The dataset of a run may grow, and its vocabulary with it.
// Exports, which have no optimizer, may go on with another run, in which ids without a row have other values.
nlohmann::json lasting(const nlohmann::json& description) {
  nlohmann::json identity = identity_of(description);
  for (const char* size : {"rows", "first_rows"}) identity.erase(size);
  if (identity.contains("optimizer")) return identity;
  for (const char* of_run : {"key", "initial", "dtype"}) identity.erase(of_run);
  return identity;
}

}  // namespace

bool may_follow(const nlohmann::json& before, const nlohmann::json& now) {
  return lasting(before) == lasting(now) && before.contains("limits") == now.contains("limits");
}

nlohmann::json identity_of(nlohmann::json description) {
  for (const char* varying : {"rows_alive", "limits", "increment"}) description.erase(varying);
  return description;
}

SavedTable::Layer::Layer(const SectionReader& section)
    : folder(section.folder()), description(section.description()), file(section.file()) {
  const auto dim = description.at("dim").get<std::int64_t>();
  const std::int64_t width = description.value("state_width", std::int64_t{0});
  ids = file.column<std::int64_t>("ids");
  const auto n = static_cast<std::int64_t>(ids.size());
  const bool narrow = std::any_of(file.tensors().begin(), file.tensors().end(), [](const TensorSpec& tensor) {
    return tensor.name == "rows" && tensor.dtype == DType::bf16;
  });
  if (narrow) {
    for (const BFloat16 value : file.values<BFloat16>("rows", {n, dim}))
      widened.push_back(static_cast<float>(value));
    rows = widened;
  } else {
    rows = file.values<float>("rows", {n, dim});
  }
  if (width > 0) state = file.values<float>("state", {n, width});
  if (description.contains("limits")) history = file.values<std::int64_t>("history", {n, 2});
  if (description.contains("increment")) gone = file.column<std::int64_t>("gone");
  const auto check_ascending = [&](std::span<const std::int64_t> list, const char* name) {
    const auto last = std::adjacent_find(list.begin(), list.end(), std::greater_equal<>());
    if (last == list.end()) return;
    fail("{}: table {}: expected ascending {}, found {} after {}", folder.string(),
         description.at("name").dump(), name, last[1], last[0]);
  };
  check_ascending(ids, "ids");
  check_ascending(gone, "ids of rows that are gone");
}

SavedTable::SavedTable(const SectionReader& section) {
  if (section.description().contains("increment")) {
    const auto base = section.base();
    check(base.has_value(), "{}: table {} has only changes, and what they change is not known",
          section.folder().string(), section.description().at("name").dump());
    layers_.push_back(std::make_unique<Layer>(*base));
    apply(section);
  } else {
    layers_.push_back(std::make_unique<Layer>(section));
  }
  dim_ = description().at("dim").get<std::int64_t>();
  state_width_ = description().value("state_width", std::int64_t{0});
}

void SavedTable::apply(const SectionReader& section) {
  auto layer = std::make_unique<Layer>(section);
  check(may_follow(description(), layer->description),
        "{}: expected the table {}, found {}: it continues another run", section.folder().string(),
        lasting(description()).dump(), lasting(layer->description).dump());
  merge(*layer);
  layers_.push_back(std::move(layer));
  const auto alive = description().at("rows_alive").get<std::size_t>();
  check(size() == alive, "{}: table {}: expected {} rows after its changes, found {}",
        section.folder().string(), description().at("name").dump(), alive, size());
}

// Both lists ascend.
void SavedTable::merge(const Layer& changes) {
  const auto new_layer = static_cast<std::uint32_t>(layers_.size());
  const std::span<const std::int64_t> before = ids();
  std::vector<std::int64_t> merged;
  std::vector<Place> places;
  merged.reserve(before.size() + changes.ids.size());
  places.reserve(before.size() + changes.ids.size());
  std::size_t old = 0, fresh = 0, gone = 0;
  while (old < before.size() || fresh < changes.ids.size()) {
    if (fresh < changes.ids.size() && (old == before.size() || changes.ids[fresh] <= before[old])) {
      if (old < before.size() && changes.ids[fresh] == before[old]) ++old;
      merged.push_back(changes.ids[fresh]);
      places.push_back({new_layer, fresh++});
    } else if (gone < changes.gone.size() && changes.gone[gone] == before[old]) {
      ++gone;
      ++old;
    } else {
      merged.push_back(before[old]);
      places.push_back(is_merged_ ? places_[old] : Place{0, old});
      ++old;
    }
  }
  check(gone == changes.gone.size(), "{}: table {}: the row of id {} is gone, and had not been there",
        changes.folder.string(), changes.description.at("name").dump(), changes.gone[gone]);
  is_merged_ = true;
  ids_ = std::move(merged);
  places_ = std::move(places);
}

}  // namespace hstu
