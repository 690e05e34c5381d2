#include "hstu/codes/code_trie.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {

CodeTrie::CodeTrie(const ItemCodes& codes) : levels_(codes.levels()) {
  for (const std::int64_t item : order_by_tuple(codes)) {
    const auto tuple = codes.tuple(item);
    if (tuples_ == 0 || !std::equal(tuple.begin(), tuple.end(), codes_.end() - levels_)) {
      codes_.insert(codes_.end(), tuple.begin(), tuple.end());
      offsets_.push_back(std::ssize(items_));
      ++tuples_;
    }
    items_.push_back(codes.items[static_cast<std::size_t>(item)]);
  }
  offsets_.push_back(std::ssize(items_));
  add_nodes();
}

void CodeTrie::add_nodes() {
  std::vector<Prefix> above{root()};
  for (std::int64_t l = 0; l < levels_; ++l) {
    Level& level = nodes_.emplace_back();
    std::vector<Prefix> nodes;
    for (const Prefix& prefix : above) {
      level.first_child.push_back(static_cast<std::int32_t>(nodes.size()));
      each_child(prefix, l, [&](std::int32_t code, Prefix child) {
        level.code.push_back(code);
        nodes.push_back(child);
      });
    }
    level.first_child.push_back(static_cast<std::int32_t>(nodes.size()));
    above = std::move(nodes);
  }
}

std::int64_t CodeTrie::end_of_run(std::int64_t begin, std::int64_t end, std::int64_t level) const {
  const std::int32_t c = code(begin, level);
  // Runs are short at the last levels: looks near the begin first.
  std::int64_t step = 1;
  while (begin + step < end && code(begin + step, level) == c) step *= 2;
  std::int64_t lo = begin + step / 2, hi = std::min(begin + step, end);  // lo has the code, hi does not
  while (hi - lo > 1) {
    const std::int64_t middle = lo + (hi - lo) / 2;
    (code(middle, level) == c ? lo : hi) = middle;
  }
  return hi;
}

std::int64_t CodeTrie::find(std::span<const std::int32_t> tuple) const {
  require(std::ssize(tuple) == levels_, "expected a tuple of {} codes, found {}", levels_, tuple.size());
  Prefix prefix = root();
  for (std::int64_t l = 0; l < levels_ && prefix.begin < prefix.end; ++l) {
    const std::int32_t wanted = tuple[static_cast<std::size_t>(l)];
    std::int64_t lo = prefix.begin, hi = prefix.end;
    while (lo < hi) {
      const std::int64_t middle = lo + (hi - lo) / 2;
      if (code(middle, l) < wanted)
        lo = middle + 1;
      else
        hi = middle;
    }
    if (lo == prefix.end || code(lo, l) != wanted) return -1;
    prefix = {lo, end_of_run(lo, prefix.end, l)};
  }
  return prefix.begin < prefix.end ? prefix.begin : -1;
}

}  // namespace hstu
