// Membership in a short list.
#pragma once

#include <algorithm>

namespace hstu {

template <typename List, typename Value>
bool contains(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace hstu
