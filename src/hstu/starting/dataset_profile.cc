#include "hstu/starting/dataset_profile.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/base/text_form.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/names.h"

namespace hstu {
namespace {

constexpr std::int64_t kMostEvents = 5'000'000;
constexpr std::int64_t kKnown = 5;  // events before the hold-out that make a user known

// min_history of a stored index of all users, "m5_w86400"; the smallest of several.
std::optional<std::int64_t> indexed_min_history(const Path& dataset) {
  std::optional<std::int64_t> smallest;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(dataset / kAnchorFolder, ignored)) {
    const std::vector<std::string> parts = split(entry.path().filename().string(), '_');
    if (parts.size() != 2 || !parts[0].starts_with("m")) continue;
    const auto found = parse_number<std::int64_t>(std::string_view(parts[0]).substr(1));
    if (found) smallest = std::min(*found, smallest.value_or(*found));
  }
  return smallest;
}

// Every n-th user, so many that their events are at most kMostEvents.
class SampledUsers {
 public:
  explicit SampledUsers(const Dataset& dataset)
      : dataset_(dataset), stride_((dataset.events() + kMostEvents - 1) / kMostEvents) {
    stride_ = std::max<std::int64_t>(1, stride_);
  }

  // Calls body(n, position) for each event of each: the user's n-th, from 0, in the order of time.
  template <typename Body>
  void each(const Body& body) const {
    for (std::int64_t u = 0; u < dataset_.users(); u += stride_) {
      std::int64_t n = 0;
      dataset_.events_of(u).each([&](std::int64_t position) { body(n++, position); });
    }
  }
  double scale() const { return static_cast<double>(stride_); }

 private:
  const Dataset& dataset_;
  std::int64_t stride_;
};

bool rankable(const Dataset& dataset, std::int64_t position) {
  return (dataset.action()[static_cast<std::size_t>(position)] & kRankableBit) != 0;
}

void add_event_counts(const Dataset& dataset, DatasetProfile& profile) {
  std::vector<std::int64_t> counts;
  counts.reserve(static_cast<std::size_t>(dataset.users()));
  for (std::int64_t u = 0; u < dataset.users(); ++u) counts.push_back(dataset.events_of(u).size());
  std::sort(counts.begin(), counts.end());
  profile.median_events = counts[counts.size() / 2];
  profile.long_events = counts[counts.size() * 9 / 10];
}

void add_samples(const Dataset& dataset, DatasetProfile& profile) {
  const SampledUsers users(dataset);
  std::vector<std::int64_t> times;
  users.each([&](std::int64_t n, std::int64_t p) {
    if (n >= profile.min_history && rankable(dataset, p)) times.push_back(dataset.time()[p]);
  });
  if (times.empty()) return;
  profile.samples = std::llround(static_cast<double>(times.size()) * users.scale());
  const auto tenth = times.begin() + static_cast<std::ptrdiff_t>(times.size() * 9 / 10);
  std::nth_element(times.begin(), tenth, times.end());
  std::int64_t late = 0, known = 0, early = 0;
  users.each([&](std::int64_t n, std::int64_t p) {
    if (n == 0) early = 0;
    if (dataset.time()[p] < *tenth) {
      ++early;
    } else if (n >= profile.min_history && rankable(dataset, p)) {
      ++late;
      known += early >= kKnown ? 1 : 0;
    }
  });
  profile.known_users = late > 0 ? static_cast<double>(known) / static_cast<double>(late) : 0;
}

void add_repeated(const Dataset& dataset, DatasetProfile& profile) {
  std::unordered_set<std::int64_t> items;
  std::int64_t events = 0, repeated = 0;
  SampledUsers(dataset).each([&](std::int64_t n, std::int64_t p) {
    if (n == 0) items.clear();
    ++events;
    repeated += items.insert(dataset.item()[p]).second ? 0 : 1;
  });
  profile.repeated = static_cast<double>(repeated) / static_cast<double>(std::max<std::int64_t>(1, events));
}

// How often samples with some value are positive.
struct LabelCounts {
  double positives = 0, all = 0;
  // In nats, of all these samples together.
  double entropy() const {
    double sum = 0;
    for (const double n : {positives, all - positives})
      if (n > 0) sum -= n * std::log(n / all);
    return sum;
  }
};

// Of some thousand texts, in equal distances.
std::string unlike_of(const Path& path, const Manifest& manifest, const std::string& of) {
  constexpr std::int64_t kSampledTexts = 20'000;
  const Names names(path, manifest, of);
  const std::int64_t step = std::max<std::int64_t>(1, names.size() / kSampledTexts);
  std::vector<std::string_view> texts;
  for (std::int64_t row = 0; row < names.size(); row += step) texts.push_back(names.name(row));
  return unlike_categories(texts);
}

// The samples of one user in a few are enough.
ContextProfile profile_context(const Dataset& dataset, std::int64_t min_history, const std::string& name) {
  const MappedColumn& texts = dataset.context(name);
  const std::uint8_t label = dataset.manifest().label_bit();
  ContextProfile profile{.name = name};
  std::unordered_map<std::int64_t, LabelCounts> by_text;
  LabelCounts total;
  SampledUsers(dataset).each([&](std::int64_t n, std::int64_t p) {
    if (n < min_history || !rankable(dataset, p)) return;
    const bool positive = (dataset.action()[static_cast<std::size_t>(p)] & label) != 0;
    for (LabelCounts* counts : {&by_text[texts[p]], &total}) {
      counts->positives += positive ? 1 : 0;
      ++counts->all;
    }
  });
  double left = 0;
  for (const auto& [text, counts] : by_text) left += counts.entropy();
  // The counts of many texts explain some of any label by chance: half a nat each (Miller and Madow, 1955).
  left += (static_cast<double>(by_text.size()) - 1) / 2;
  profile.texts = std::ssize(by_text);
  profile.explained = total.entropy() > 0 ? std::max(0.0, 1 - left / total.entropy()) : 0;
  return profile;
}

}  // namespace

DatasetProfile profile_dataset(const Path& path) {
  const Dataset dataset(path);
  if (dataset.events() == 0 || dataset.users() == 0) fail_usage("{} has no events", path.string());
  DatasetProfile profile;
  profile.path = path;
  profile.manifest = dataset.manifest();
  profile.min_user_id = dataset.user_ids().front();
  add_event_counts(dataset, profile);
  add_repeated(dataset, profile);
  const std::int64_t few = std::min<std::int64_t>(5, profile.median_events / 4);
  const std::int64_t indexed = indexed_min_history(path).value_or(few);
  profile.min_history = indexed <= profile.median_events ? indexed : few;
  add_samples(dataset, profile);
  if (profile.samples == 0) {
    fail_usage(
        "{} has no event to rank: its manifest counts {} rankable events; see \"rankable\" in "
        "docs/prepare.md",
        path.string(), dataset.manifest().counts.rankable);
  }
  for (const std::string& name : profile.manifest.context) {
    const auto& named = profile.manifest.names;
    if (!contains(named, "context_" + name)) continue;
    profile.contexts.push_back(profile_context(dataset, profile.min_history, name));
    profile.contexts.back().unlike = unlike_of(path, profile.manifest, "context_" + name);
  }
  for (const std::string& name : profile.manifest.attributes) {
    profile.attributes.push_back({.name = name});
    if (contains(profile.manifest.names, "attribute_" + name))
      profile.attributes.back().unlike = unlike_of(path, profile.manifest, "attribute_" + name);
  }
  return profile;
}

}  // namespace hstu
