#include "hstu/prepare/coverage.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/events/event_extractor.h"

namespace hstu {
namespace {

constexpr std::int64_t kMostEvents = std::int64_t{1} << 22;
constexpr std::int64_t kBlock = 1 << 12;  // events that are read together: few pages of a large file

std::vector<std::int64_t> items_of(const Dataset& dataset) {
  const std::int64_t step =
      std::max(kBlock, dataset.events() / (kMostEvents / kBlock));  // from one block to the next
  std::unordered_set<std::int64_t> items;
  for (const Segment& segment : dataset.segments()) {
    for (std::int64_t begin = segment.first(); begin < segment.end(); begin += step) {
      const std::int64_t end = std::min(begin + kBlock, segment.end());
      for (std::int64_t p = begin; p < end; ++p) items.insert(dataset.item()[p]);
    }
  }
  return {items.begin(), items.end()};
}

// Some ids of a column as the file has them, in quotes, because blanks count.
std::string some_ids(const Path& file, const std::string& column, const ReadOptions& options) {
  constexpr std::size_t kShown = 3, kBytes = 40;
  const std::array columns{column};
  const auto source = open_columns(file, columns, options);
  RawBatch batch;
  if (!source->next(batch) || batch.rows == 0) return "none";
  const RawColumn& ids = batch.columns[0];
  std::vector<std::string> shown;
  const auto add = [&](const std::string& text) {
    shown.push_back(fmt::format("\"{}\"", text.substr(0, kBytes)));
  };
  if (ids.kind == RawColumn::Kind::kText) {
    for (const std::string& text : std::span(ids.texts).first(std::min(kShown, ids.texts.size()))) add(text);
  } else {
    for (const std::int64_t id : std::span(ids.integers).first(std::min(kShown, ids.integers.size())))
      shown.push_back(std::to_string(id));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace

std::vector<Coverage> coverage_of(const Dataset& dataset, bool* sampled) {
  if (sampled != nullptr) *sampled = dataset.events() > kMostEvents;
  std::vector<Coverage> coverages;
  if (dataset.manifest().attributes.empty()) return coverages;
  const std::vector<std::int64_t> items = items_of(dataset);
  for (const std::string& name : dataset.manifest().attributes) {
    const AttributeColumn& values = dataset.attribute(name);
    const auto mapped =
        std::count_if(items.begin(), items.end(), [&](std::int64_t item) { return values.of(item) != 0; });
    coverages.push_back({.attribute = name, .items = std::ssize(items), .mapped = mapped});
  }
  return coverages;
}

std::vector<std::string> coverage_mistakes(const Schema& schema, const Path& input,
                                           const std::vector<Path>& files, const Dataset& dataset) {
  constexpr std::int64_t kTenth = 10;
  std::vector<std::string> mistakes;
  for (const Coverage& coverage : coverage_of(dataset)) {
    if (coverage.mapped * kTenth >= coverage.items) continue;
    const auto rule = std::find_if(schema.attributes.begin(), schema.attributes.end(),
                                   [&](const AttributeRule& r) { return r.name == coverage.attribute; });
    if (rule == schema.attributes.end() || rule->file.empty()) continue;
    const Path file = input / rule->file;
    mistakes.push_back(fmt::format(
        "attribute \"{}\": {} has a value for {} of {} items of the log: compare its ids (column \"{}\": {}) "
        "with "
        "those of the log (column \"{}\": {})",
        coverage.attribute, file.string(), with_separators(coverage.mapped), with_separators(coverage.items),
        rule->item_column, some_ids(file, rule->item_column, mapping_options(schema, *rule)), schema.item,
        some_ids(files.front(), schema.item, event_options(schema))));
  }
  return mistakes;
}

}  // namespace hstu
