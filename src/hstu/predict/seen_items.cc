#include "hstu/predict/seen_items.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {

UnseenItems::UnseenItems(const Dataset& dataset, const std::vector<std::string>& actions)
    : dataset_(dataset) {
  std::vector<std::string> known;
  for (const ActionBit& action : dataset.manifest().actions) known.push_back(action.name);
  for (const std::string& name : actions) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end())
      fail_usage("--exclude-seen: the dataset has no action \"{}\"{}", name, suggestion(name, known));
    const std::uint8_t bit = dataset.manifest().actions[static_cast<std::size_t>(found - known.begin())].bit;
    if ((bits_ & bit) != 0) fail_usage("--exclude-seen names \"{}\" twice", name);
    bits_ = static_cast<std::uint8_t>(bits_ | bit);
  }
}

const std::vector<std::int64_t>& UnseenItems::seen(const UserEvents& events) {
  seen_.clear();
  events.each([&](std::int64_t p) {
    if (bits_ == 0 || (dataset_.action()[static_cast<std::size_t>(p)] & bits_) != 0)
      seen_.push_back(dataset_.item()[p]);
  });
  std::sort(seen_.begin(), seen_.end());
  seen_.erase(std::unique(seen_.begin(), seen_.end()), seen_.end());
  return seen_;
}

const std::vector<std::size_t>& UnseenItems::others(const std::vector<std::int64_t>& items,
                                                    const UserEvents& events) {
  seen(events);
  others_.clear();
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!std::binary_search(seen_.begin(), seen_.end(), items[i])) others_.push_back(i);
  return others_;
}

}  // namespace hstu
