#include "hstu/tokenizer/collisions.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/tokenizer/assignment.h"

namespace hstu {
namespace {

// Calls visit(indices of items) for each group of items whose first `levels` codes are equal, in the order of
// their tuples.
template <typename Visit>
void each_group(const ItemCodes& codes, std::int64_t levels, const Visit& visit) {
  const std::vector<std::int64_t> order = order_by_tuple(codes);
  const auto same = [&](std::int64_t a, std::int64_t b) {
    return std::equal(codes.tuple(a).begin(), codes.tuple(a).begin() + levels, codes.tuple(b).begin());
  };
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && same(order[begin], order[end])) ++end;
    visit(std::span(order).subspan(begin, end - begin));
  }
}

std::int64_t add_level(ItemCodes& codes) {
  std::vector<std::int32_t> number(codes.items.size(), 0);
  std::int32_t most = 0;
  each_group(codes, codes.levels(), [&](std::span<const std::int64_t> group) {
    std::int32_t next = 0;
    for (const std::int64_t item : group) number[static_cast<std::size_t>(item)] = next++;
    most = std::max(most, next);
  });
  std::vector<std::int32_t> longer;
  for (std::int64_t i = 0; i < codes.size(); ++i) {
    longer.insert(longer.end(), codes.tuple(i).begin(), codes.tuple(i).end());
    longer.push_back(number[static_cast<std::size_t>(i)]);
  }
  codes.codes = std::move(longer);
  codes.sizes.push_back(most);
  return most;
}

using Prefix = std::vector<std::int32_t>;

Prefix prefix_of(const ItemCodes& codes, std::int64_t item, std::size_t levels) {
  const auto tuple = codes.tuple(item);
  return {tuple.begin(), tuple.begin() + static_cast<std::ptrdiff_t>(levels)};
}

// How many of `known` have each last code, by the codes before it: of the prefixes that `items` have too.
std::map<Prefix, std::vector<std::int64_t>> used_codes(const ItemCodes& items, const ItemCodes& known) {
  const std::size_t last = known.sizes.size() - 1;
  std::map<Prefix, std::vector<std::int64_t>> used;
  for (std::int64_t i = 0; i < items.size(); ++i)
    used[prefix_of(items, i, last)].resize(static_cast<std::size_t>(known.sizes.back()));
  for (std::int64_t i = 0; i < known.size(); ++i)
    if (const auto found = used.find(prefix_of(known, i, last)); found != used.end())
      ++found->second[static_cast<std::size_t>(known.tuple(i)[last])];
  return used;
}

class Reassignment {
 public:
  explicit Reassignment(TokenizedItems& items)
      : items_(items),
        codes_(items.codes.sizes.back()),
        width_(static_cast<std::int64_t>(items.last_centers.size()) / codes_),
        last_(static_cast<std::size_t>(items.codes.levels() - 1)) {}

  // `used`: how many other items have each last code of a prefix; prefixes without any may be missing.
  std::int64_t run(const std::map<Prefix, std::vector<std::int64_t>>& used) {
    each_group(items_.codes, items_.codes.levels() - 1, [&](std::span<const std::int64_t> group) {
      const auto others = used.find(prefix_of(items_.codes, group.front(), last_));
      if (others != used.end()) return spread(group, others->second);
      if (!collide(group)) return;
      if (std::ssize(group) <= codes_)
        assign(group);
      else
        spread(group, std::vector<std::int64_t>(static_cast<std::size_t>(codes_), 0));
    });
    for (const auto& [at, code] : new_codes_) items_.codes.codes[at] = code;
    return static_cast<std::int64_t>(new_codes_.size());
  }

 private:
  std::size_t place(std::int64_t item) const {
    return static_cast<std::size_t>(item) * items_.codes.sizes.size() + last_;
  }
  // Tuples of a group ascend.
  bool collide(std::span<const std::int64_t> group) const {
    for (std::size_t i = 1; i < group.size(); ++i)
      if (items_.codes.codes[place(group[i - 1])] == items_.codes.codes[place(group[i])]) return true;
    return false;
  }
  double distance(std::int64_t item, std::int64_t code) const {
    const float *const x = items_.last_residuals.data() + item * width_, *const center =
                                                                             items_.last_centers.data() +
                                                                             code * width_;
    double sum = 0;
    for (std::int64_t d = 0; d < width_; ++d)
      sum += static_cast<double>(x[d] - center[d]) * (x[d] - center[d]);
    return sum;
  }
  void assign(std::span<const std::int64_t> group) {
    std::vector<AssignmentCost> costs;
    for (const std::int64_t item : group)
      for (std::int64_t c = 0; c < codes_; ++c)
        costs.push_back({items_.codes.codes[place(item)] == c ? 0 : 1, distance(item, c)});
    const std::vector<std::int64_t> assigned = assign_columns(costs, std::ssize(group), codes_);
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto code = static_cast<std::int32_t>(assigned[i]);
      if (items_.codes.codes[place(group[i])] != code) new_codes_.emplace_back(place(group[i]), code);
    }
  }

  // As evenly as possible. `used`: items that have each code.
  void spread(std::span<const std::int64_t> group, std::vector<std::int64_t> used) {
    const std::int64_t all = std::accumulate(used.begin(), used.end(), std::ssize(group));
    std::int64_t each = all / codes_, more = all % codes_;  // so many codes have one more
    std::vector<std::int64_t> left(group.begin(), group.end());
    const auto own = [&](std::int64_t item) { return items_.codes.codes[place(item)]; };
    std::ranges::stable_sort(left, {}, [&](std::int64_t item) { return distance(item, own(item)); });
    for (const bool is_more : {false, true}) {
      std::vector<std::int64_t> others;
      for (const std::int64_t item : left) {
        std::int64_t& of_code = used[static_cast<std::size_t>(own(item))];
        if (of_code < each || (is_more && of_code == each && more > 0)) {
          more -= of_code == each ? 1 : 0;
          ++of_code;
        } else {
          others.push_back(item);
        }
      }
      left = std::move(others);
    }
    for (const std::int64_t item : left) {
      const std::int64_t least = *std::ranges::min_element(used);
      std::int64_t nearest = -1;
      for (std::int64_t c = 0; c < codes_; ++c)
        if (used[static_cast<std::size_t>(c)] == least &&
            (nearest < 0 || distance(item, c) < distance(item, nearest)))
          nearest = c;
      ++used[static_cast<std::size_t>(nearest)];
      if (nearest != own(item)) new_codes_.emplace_back(place(item), static_cast<std::int32_t>(nearest));
    }
  }

  TokenizedItems& items_;
  std::int64_t codes_, width_;
  std::size_t last_;
  std::vector<std::pair<std::size_t, std::int32_t>> new_codes_;
};

}  // namespace

std::int64_t resolve_collisions(TokenizedItems& items, Collisions rule) {
  switch (rule) {
    case Collisions::keep:
      return 0;
    case Collisions::extra:
      return add_level(items.codes);
    case Collisions::reassign:
      return Reassignment(items).run({});
  }
  fail("not a rule for collisions");
}

std::int64_t resolve_collisions(TokenizedItems& items, const ItemCodes& known, Collisions rule) {
  if (rule == Collisions::keep) return 0;
  auto used = used_codes(items.codes, known);
  if (rule == Collisions::reassign) return Reassignment(items).run(used);
  ItemCodes longer{.sizes = known.sizes, .items = items.codes.items, .codes = {}};
  for (std::int64_t i = 0; i < items.codes.size(); ++i) {
    const Prefix prefix = prefix_of(items.codes, i, items.codes.sizes.size());
    std::vector<std::int64_t>& numbers = used.at(prefix);
    const auto least = std::ranges::min_element(numbers);
    longer.codes.insert(longer.codes.end(), prefix.begin(), prefix.end());
    longer.codes.push_back(static_cast<std::int32_t>(least - numbers.begin()));
    ++*least;
  }
  items.codes = std::move(longer);
  return known.sizes.back();
}

}  // namespace hstu
