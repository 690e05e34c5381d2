// The tuples of a catalogue as a trie: which codes may follow a prefix, and which items have a tuple.
// Compact: the different tuples in ascending order, so that a prefix is a range of them, found by binary
// search; and the prefixes of each length as nodes, whose children are neighbours, for searches on a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/codes/item_codes.h"

namespace hstu {

class CodeTrie {
 public:
  explicit CodeTrie(const ItemCodes& codes);

  // The tuples [begin, end) that have a prefix.
  struct Prefix {
    std::int64_t begin, end;
    bool operator==(const Prefix&) const = default;
  };
  Prefix root() const { return {0, tuples_}; }
  std::int64_t levels() const { return levels_; }
  std::int64_t tuples() const { return tuples_; }
  std::int32_t code(std::int64_t tuple, std::int64_t level) const {
    return codes_[static_cast<std::size_t>(tuple * levels_ + level)];
  }

  // The prefixes of l + 1 codes in ascending order, which are the nodes of level l; those of the last level
  // are the tuples. Above level 0 there is one node, the empty prefix.
  struct Level {
    std::vector<std::int32_t> code;         // (nodes) the last code of each
    std::vector<std::int32_t> first_child;  // (nodes of the level above + 1): theirs among these nodes
  };
  const Level& level(std::int64_t l) const { return nodes_[static_cast<std::size_t>(l)]; }

  // Calls visit(code, prefix with it) for each code that follows a prefix of `level` codes, ascending.
  template <typename Visit>
  void each_child(Prefix prefix, std::int64_t level, const Visit& visit) const {
    for (std::int64_t begin = prefix.begin; begin < prefix.end;) {
      const std::int32_t c = code(begin, level);
      const std::int64_t end = end_of_run(begin, prefix.end, level);
      visit(c, Prefix{begin, end});
      begin = end;
    }
  }
  // The tuple with these codes; -1: no item has it.
  std::int64_t find(std::span<const std::int32_t> tuple) const;
  // The ids of the items with a tuple, ascending.
  std::span<const std::int64_t> items(std::int64_t tuple) const {
    const auto t = static_cast<std::size_t>(tuple);
    return std::span(items_).subspan(static_cast<std::size_t>(offsets_[t]),
                                     static_cast<std::size_t>(offsets_[t + 1] - offsets_[t]));
  }

 private:
  void add_nodes();
  // From `begin` on, the first tuple before `end` with another code at `level`.
  std::int64_t end_of_run(std::int64_t begin, std::int64_t end, std::int64_t level) const;

  std::int64_t levels_, tuples_ = 0;
  std::vector<Level> nodes_;           // (levels)
  std::vector<std::int32_t> codes_;    // (tuples, levels)
  std::vector<std::int64_t> offsets_;  // (tuples + 1) into items_
  std::vector<std::int64_t> items_;
};

}  // namespace hstu
