// Contextual features: ids computed from a candidate, its user and its time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/candidate.h"
#include "hstu/batching/options.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

inline constexpr std::int64_t kSecondsPerHour = 3'600;
inline constexpr std::int64_t kSecondsPerDay = 86'400;

// Hour of the day 0..23 and day modulo 7 (0 for the day of time 0), also for times before 0.
std::int64_t hour_of_day(std::int64_t seconds);
std::int64_t weekday(std::int64_t seconds);

// XXH64 with seed 0 over the keys as little-endian int64 values; and the same modulo `rows`, as an id.
std::uint64_t hash_keys(std::span<const std::int64_t> keys);
inline std::int64_t hashed_id(std::span<const std::int64_t> keys, std::int64_t rows) {
  return static_cast<std::int64_t>(hash_keys(keys) % static_cast<std::uint64_t>(rows));
}

// The contextual features of a configuration, resolved against a dataset, which must outlive them.
class ContextualFeatures {
 public:
  // UsageError for an unknown key (with the nearest known key), no key, several keys without hashing, or
  // hashing without rows.
  ContextualFeatures(const Dataset& dataset, const std::vector<ContextualFeature>& features);

  std::size_t size() const { return features_.size(); }
  // Whether an id is made of the item or its attributes.
  bool depend_on_item() const;
  // The id of one feature for a candidate.
  std::int64_t value(std::size_t feature, const Candidate& candidate) const;

 private:
  enum class Source { user, item, hour, weekday, attribute, context };
  struct Key {
    Source source;
    const MappedColumn* column = nullptr;        // of a context key
    std::size_t place = 0;                       // of a context key in the manifest
    const AttributeColumn* attribute = nullptr;  // of an attribute key
  };
  struct Feature {
    std::vector<Key> keys;
    std::int64_t rows = 0;  // 0: the raw id
  };
  static Key resolve(const Dataset& dataset, const ContextualFeature& feature, const std::string& key);
  static std::int64_t key_value(const Key& key, const Candidate& candidate);

  std::vector<Feature> features_;
};

}  // namespace hstu
