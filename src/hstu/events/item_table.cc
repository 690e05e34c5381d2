#include "hstu/events/item_table.h"

#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::size_t kFirstEntries = 1024;  // a power of two, as all sizes

}  // namespace

ItemTable::ItemTable(std::int64_t memory) : memory_(memory), entries_(kFirstEntries) {}

std::size_t ItemTable::place_of(std::int64_t id) const {
  const std::size_t mask = entries_.size() - 1;
  std::size_t place = mix64(static_cast<std::uint64_t>(id)) & mask;
  while (entries_[place].id != -1 && entries_[place].id != id) place = (place + 1) & mask;
  return place;
}

ItemTable::Entry& ItemTable::at(std::int64_t id) {
  std::size_t place = place_of(id);
  if (entries_[place].id == -1) {
    constexpr std::int64_t kFull = 10, kUsed = 7;  // a table of which 7 in 10 entries are used grows
    if ((size_ + 1) * kFull > static_cast<std::int64_t>(entries_.size()) * kUsed) {
      grow();
      place = place_of(id);
    }
    entries_[place].id = id;
    ++size_;
  }
  return entries_[place];
}

void ItemTable::grow() {
  std::vector<Entry> larger;
  const auto bytes = static_cast<std::int64_t>(3 * entries_.size() * sizeof(Entry));
  if (bytes > memory_) {
    fail_usage(
        "core counts the events of every item, and more than {} items need more than {}: increase --memory",
        with_separators(size_), human_bytes(static_cast<double>(memory_)));
  }
  larger.resize(2 * entries_.size());
  std::swap(entries_, larger);
  for (const Entry& entry : larger)
    if (entry.id != -1) entries_[place_of(entry.id)] = entry;
}

}  // namespace hstu
