#include "hstu/batching/features.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <xxhash.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::size_t kMaxKeys = 8;  // of one feature

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}

// The index of `name`; the number of names if it is not there.
std::size_t place_of(const std::string& name, const std::vector<std::string>& names) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

std::int64_t hour_of_day(std::int64_t seconds) {
  return floor_mod(seconds, kSecondsPerDay) / kSecondsPerHour;
}

std::int64_t weekday(std::int64_t seconds) {
  return floor_mod(seconds, 7 * kSecondsPerDay) / kSecondsPerDay;
}

std::uint64_t hash_keys(std::span<const std::int64_t> keys) {
  return XXH64(keys.data(), keys.size_bytes(), 0);
}

ContextualFeatures::ContextualFeatures(const Dataset& dataset,
                                       const std::vector<ContextualFeature>& features) {
  for (const ContextualFeature& feature : features) {
    if (feature.keys.empty() || feature.keys.size() > kMaxKeys) {
      fail_usage("contextual feature \"{}\": expected 1 to {} keys, found {}", feature.name, kMaxKeys,
                 feature.keys.size());
    }
    if (!feature.hashed && feature.keys.size() > 1) {
      fail_usage("contextual feature \"{}\": {} keys make one id only when hashed; set hashed = true",
                 feature.name, feature.keys.size());
    }
    if (feature.hashed && feature.rows < 1) {
      fail_usage("contextual feature \"{}\": rows: expected at least 1 to hash into, found {}", feature.name,
                 feature.rows);
    }
    Feature resolved{.keys = {}, .rows = feature.hashed ? feature.rows : 0};
    for (const std::string& key : feature.keys) resolved.keys.push_back(resolve(dataset, feature, key));
    features_.push_back(std::move(resolved));
  }
}

ContextualFeatures::Key ContextualFeatures::resolve(const Dataset& dataset, const ContextualFeature& feature,
                                                    const std::string& key) {
  if (key == "user") return {Source::user};
  if (key == "item") return {Source::item};
  if (key == "hour") return {Source::hour};
  if (key == "weekday") return {Source::weekday};
  const Manifest& manifest = dataset.manifest();
  if (place_of(key, manifest.attributes) < manifest.attributes.size())
    return {.source = Source::attribute, .attribute = &dataset.attribute(key)};
  const std::size_t place = place_of(key, manifest.context);
  if (place < manifest.context.size()) return {Source::context, &dataset.context(key), place};
  std::vector<std::string> known{"user", "item", "hour", "weekday"};
  known.insert(known.end(), manifest.attributes.begin(), manifest.attributes.end());
  known.insert(known.end(), manifest.context.begin(), manifest.context.end());
  fail_usage("contextual feature \"{}\": unknown key \"{}\"{}", feature.name, key, suggestion(key, known));
}

bool ContextualFeatures::depend_on_item() const {
  return std::any_of(features_.begin(), features_.end(), [](const Feature& feature) {
    return std::any_of(feature.keys.begin(), feature.keys.end(), [](const Key& key) {
      return key.source == Source::item || key.source == Source::attribute;
    });
  });
}

std::int64_t ContextualFeatures::key_value(const Key& key, const Candidate& candidate) {
  switch (key.source) {
    case Source::user:
      return candidate.user;
    case Source::item:
      return candidate.item;
    case Source::hour:
      return hour_of_day(candidate.time);
    case Source::weekday:
      return weekday(candidate.time);
    case Source::attribute:
      return key.attribute->of(candidate.item);
    case Source::context:
      return candidate.is_anchor ? (*key.column)[candidate.name] : candidate.context[key.place];
  }
  fail("unreachable");
}

std::int64_t ContextualFeatures::value(std::size_t feature, const Candidate& candidate) const {
  const Feature& f = features_[feature];
  std::array<std::int64_t, kMaxKeys> values{};
  for (std::size_t k = 0; k < f.keys.size(); ++k) values[k] = key_value(f.keys[k], candidate);
  if (f.rows == 0) return values[0];
  return hashed_id(std::span<const std::int64_t>(values).first(f.keys.size()), f.rows);
}

}  // namespace hstu
