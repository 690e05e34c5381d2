// A value of items that does not change with events: an attribute of the dataset, or the item's own id.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/dataset/dataset.h"

namespace hstu {

inline constexpr const char* kOwnId = "item";  // the key of an item's id, under which no attribute is stored

class AttributeOfItems {
 public:
  // `key`: the name of an attribute, or kOwnId. UsageError with the nearest name if the dataset has no such
  // attribute. The dataset must outlive it.
  AttributeOfItems(const Dataset& dataset, const std::string& key)
      : column_(key == kOwnId ? nullptr : &dataset.attribute(key)) {}

  std::int64_t of(std::int64_t item) const { return column_ == nullptr ? item : column_->of(item); }
  std::vector<std::int64_t> of(const std::vector<std::int64_t>& items) const;

 private:
  const AttributeColumn* column_;  // null: the id
};

// The values of an attribute that the items of a catalogue have. Alphabet: V items, A distinct values.
struct CatalogueAttribute {
  // `values`: (V) of the items.
  explicit CatalogueAttribute(const std::vector<std::int64_t>& values);

  std::int32_t number_of(std::int64_t value) const;  // in `distinct`. InternalError for another value

  std::vector<std::int64_t> distinct;  // (A) ascending
  std::vector<std::int32_t> number;    // (V) in `distinct`, in the order of the items
};

}  // namespace hstu
