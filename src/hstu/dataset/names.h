// The names of ids: of users and items whose ids are hashes of texts, and of the codes of text columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hstu/base/npy.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/mapped_column.h"

namespace hstu {

// The id of a user or item that the log names by a text: XXH3-64 of its bytes (seed 0) modulo 2^63 - 1.
// Two of n different texts have the same id with a probability of about n^2 / 2^64: 5e-8 for a million texts,
// 5e-4 for a hundred million.
std::int64_t id_of_text(std::string_view text);

// Names of one kind, mapped from a dataset: opening and looking up read a few pages, whatever their number.
// Every segment has names of its own ids of users and items, and those of all codes.
class Names {
 public:
  // `of` is an element of manifest.names: "user", "item", "attribute_NAME" or "context_NAME". UsageError if
  // the dataset has no such names, Error naming the file that contradicts the manifest.
  Names(const Path& dataset, const Manifest& manifest, std::string_view of);

  std::int64_t size() const;  // K
  // The K ids and their names (UTF-8, as in the log); ids ascend in each segment. The name is valid as long
  // as this object.
  std::int64_t id(std::int64_t row) const;
  std::string_view name(std::int64_t row) const;

  // The name of an id, and the id of a name, if the dataset knows them.
  std::optional<std::string_view> name_of(std::int64_t id) const;
  std::optional<std::int64_t> id_of(std::string_view name) const;

 private:
  // The names of one folder.
  class Part {
   public:
    Part(const Path& folder, const Manifest& manifest, const std::string& of);
    std::int64_t size() const { return ids_.size(); }
    std::int64_t id(std::int64_t row) const { return ids_[row]; }
    std::string_view name(std::int64_t row) const;
    std::optional<std::int64_t> row_of(std::int64_t id) const;
    std::optional<std::int64_t> id_of(std::string_view name) const;

   private:
    Path path_;
    NpyColumn<std::int64_t> ids_, offsets_;
    NpyColumn<std::uint8_t> text_;
    std::optional<MappedColumn> order_;  // of codes: the rows by name; ids that are hashes need none
  };

  // The part that has a row, and the row in it.
  std::pair<const Part*, std::int64_t> place_of(std::int64_t row) const;

  std::vector<Part> parts_;
};

// The names of the files: texts one after another, the ids, the offsets of the texts, the rows by name.
std::string names_file(std::string_view of);
std::string name_ids_file(std::string_view of);
std::string name_offsets_file(std::string_view of);
std::string name_order_file(std::string_view of);

}  // namespace hstu
