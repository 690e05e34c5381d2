#include "hstu/dataset/pool_counts.h"

#include <algorithm>
#include <array>

#include "hstu/base/npy.h"

namespace hstu {
namespace {

constexpr std::int64_t kMaskEvents = 64;  // events that one call of events_with examines

// Adds the number of events of each action in `action` to the counts.
void count(std::span<const std::uint8_t> action, const std::vector<ActionBit>& actions,
           std::vector<std::int64_t>& counts) {
  const auto size = static_cast<std::int64_t>(action.size());
  for (std::size_t a = 0; a < actions.size(); ++a) {
    for (std::int64_t i = 0; i < size; i += kMaskEvents) {
      counts[a] +=
          std::popcount(events_with(action.data() + i, std::min(kMaskEvents, size - i), actions[a].bit));
    }
  }
}

}  // namespace

PoolCountsWriter::PoolCountsWriter(const Path& folder, const std::vector<ActionBit>& actions)
    : actions_(actions), row_(actions.size()), file_(folder / kPoolCountsFile) {
  file_.write(header());  // the number of rows is known at the end
  put_row();
}

void PoolCountsWriter::append(std::span<const std::uint8_t> action) {
  while (!action.empty()) {
    const auto to_border = static_cast<std::size_t>(kPoolBlock - events_ % kPoolBlock);
    const auto part = action.first(std::min(to_border, action.size()));
    count(part, actions_, row_);
    events_ += static_cast<std::int64_t>(part.size());
    if (part.size() == to_border) put_row();
    action = action.subspan(part.size());
  }
}

void PoolCountsWriter::put_row() {
  for (const std::int64_t events : row_) largest_ = std::max(largest_, events);
  file_.write(row_.data(), row_.size() * sizeof(std::int64_t));
  checksum_.add(row_.data(), row_.size() * sizeof(std::int64_t));
}

std::string PoolCountsWriter::header() const {
  const std::array shape{events_ / kPoolBlock + 1, static_cast<std::int64_t>(actions_.size())};
  return npy_header(npy_type<std::int64_t>(), shape);
}

ColumnInfo PoolCountsWriter::close() {
  const std::string text = header();
  file_.overwrite(0, text.data(), text.size());
  file_.close();
  const std::int64_t rows = events_ / kPoolBlock + 1;
  return {.type = npy_type<std::int64_t>(),
          .count = rows * static_cast<std::int64_t>(actions_.size()),
          .bytes = static_cast<std::int64_t>(file_.size()),
          .checksum = checksum_.text(),
          .min = 0,
          .max = largest_};
}

}  // namespace hstu
