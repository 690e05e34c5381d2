#include "hstu/batching/attribute_of_items.h"

#include <algorithm>

#include "hstu/base/error.h"

namespace hstu {

std::vector<std::int64_t> AttributeOfItems::of(const std::vector<std::int64_t>& items) const {
  std::vector<std::int64_t> values;
  values.reserve(items.size());
  for (const std::int64_t item : items) values.push_back(of(item));
  return values;
}

CatalogueAttribute::CatalogueAttribute(const std::vector<std::int64_t>& values) : distinct(values) {
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  number.reserve(values.size());
  for (const std::int64_t value : values) number.push_back(number_of(value));
}

std::int32_t CatalogueAttribute::number_of(std::int64_t value) const {
  const auto found = std::lower_bound(distinct.begin(), distinct.end(), value);
  require(found != distinct.end() && *found == value, "no item of the catalogue has the attribute {}", value);
  return static_cast<std::int32_t>(found - distinct.begin());
}

}  // namespace hstu
