#include "hstu/dataset/names.h"

#include <algorithm>
#include <limits>
#include <span>

#include <fmt/format.h>
#include <xxhash.h>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/dataset/open_column.h"
#include "hstu/dataset/segments.h"

namespace hstu {
namespace {

// A wrong word is reported before any file is opened.
std::string checked_kind(const Path& dataset, const Manifest& manifest, std::string_view of) {
  if (!contains(manifest.names, of)) {
    fail_usage("{}: the dataset has no names of \"{}\"{}", dataset.string(), of,
               manifest.names.empty()
                   ? std::string("; it has none (keep_names in the schema keeps those of ids)")
                   : suggestion(of, manifest.names));
  }
  return std::string(of);
}

}  // namespace

std::int64_t id_of_text(std::string_view text) {
  constexpr auto kIds = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(XXH3_64bits(text.data(), text.size()) % kIds);
}

std::string names_file(std::string_view of) {
  return fmt::format("names_{}.npy", of);
}
std::string name_ids_file(std::string_view of) {
  return fmt::format("names_{}_ids.npy", of);
}
std::string name_offsets_file(std::string_view of) {
  return fmt::format("names_{}_offsets.npy", of);
}
std::string name_order_file(std::string_view of) {
  return fmt::format("names_{}_order.npy", of);
}

Names::Part::Part(const Path& folder, const Manifest& manifest, const std::string& of)
    : path_(folder / names_file(of)),
      ids_(open_column<std::int64_t>(folder, manifest, name_ids_file(of))),
      offsets_(open_column<std::int64_t>(folder, manifest, name_offsets_file(of))),
      text_(open_column<std::uint8_t>(folder, manifest, names_file(of))) {
  if (const std::string order = name_order_file(of); manifest.columns.contains(order))
    order_.emplace(open_integers(folder, manifest, order));
}

std::string_view Names::Part::name(std::int64_t row) const {
  const std::int64_t begin = offsets_[row], end = offsets_[row + 1];
  check(0 <= begin && begin <= end && end <= text_.size(),
        "{}: name {}: expected bytes within [0, {}), found [{}, {}): copy or prepare the dataset again",
        path_.string(), row, text_.size(), begin, end);
  return {reinterpret_cast<const char*>(text_.values().data()) + begin,
          static_cast<std::size_t>(end - begin)};
}

std::optional<std::int64_t> Names::Part::row_of(std::int64_t id) const {
  const auto ids = ids_.values();
  const auto found = std::lower_bound(ids.begin(), ids.end(), id);
  if (found == ids.end() || *found != id) return std::nullopt;
  return found - ids.begin();
}

std::optional<std::int64_t> Names::Part::id_of(std::string_view wanted) const {
  std::optional<std::int64_t> row;
  if (!order_) {
    row = row_of(id_of_text(wanted));
  } else {
    const auto at = [&](std::int64_t place) {
      const std::int64_t r = (*order_)[place];
      check(r >= 0 && r < size(), "{}: expected rows below {} in the order of names, found {}",
            path_.string(), size(), r);
      return r;
    };
    // The first name that is not below it. (clang 14 does not compile std::ranges::lower_bound of an iota.)
    std::int64_t first = 0, count = order_->size();
    while (count > 0) {
      const std::int64_t half = count / 2;
      const bool below = name(at(first + half)) < wanted;
      if (below) first += half + 1;
      count = below ? count - half - 1 : half;
    }
    if (first < order_->size()) row = at(first);
  }
  if (!row || name(*row) != wanted) return std::nullopt;
  return id(*row);
}

Names::Names(const Path& dataset, const Manifest& manifest, std::string_view of) {
  const std::string kind = checked_kind(dataset, manifest, of);
  if (manifest.extended.empty()) {
    parts_.emplace_back(dataset, manifest, kind);
    return;
  }
  const std::vector<SegmentFolder> segments = read_segments(dataset);
  const bool codes = kind != "user" && kind != "item";
  for (const SegmentFolder& segment : codes ? std::span(segments).last(1) : std::span(segments))
    parts_.emplace_back(segment.folder, segment.manifest, kind);
}

std::int64_t Names::size() const {
  std::int64_t size = 0;
  for (const Part& part : parts_) size += part.size();
  return size;
}

std::pair<const Names::Part*, std::int64_t> Names::place_of(std::int64_t row) const {
  const Part* part = parts_.data();
  while (row >= part->size()) row -= part++->size();
  return {part, row};
}

std::int64_t Names::id(std::int64_t row) const {
  const auto [part, own] = place_of(row);
  return part->id(own);
}

std::string_view Names::name(std::int64_t row) const {
  const auto [part, own] = place_of(row);
  return part->name(own);
}

std::optional<std::string_view> Names::name_of(std::int64_t id) const {
  for (const Part& part : parts_)
    if (const auto row = part.row_of(id)) return part.name(*row);
  return std::nullopt;
}

std::optional<std::int64_t> Names::id_of(std::string_view name) const {
  for (const Part& part : parts_)
    if (const auto id = part.id_of(name)) return id;
  return std::nullopt;
}

}  // namespace hstu
