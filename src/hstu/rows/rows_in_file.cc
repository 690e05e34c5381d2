#include <algorithm>
#include <utility>
#include <vector>

#include "hstu/rows/rows_below.h"

namespace hstu {
namespace {

constexpr std::size_t kAtATime = 1 << 14;  // rows that are in neither place

class RowsInFile final : public RowsBelow {
 public:
  RowsInFile(std::unique_ptr<RowFile> file, LineExchange& exchange)
      : file_(std::move(file)), exchange_(exchange) {}

  std::int64_t bytes() const override { return 0; }
  void move(std::span<const RowCache::Move> moves, Pace pace) override {
    for (std::size_t first = 0; first < moves.size(); first += kAtATime)
      move_some(moves.subspan(first, std::min(kAtATime, moves.size() - first)), pace);
  }
  void read(std::span<const std::int64_t> slots,
            const std::function<void(std::size_t, const float*)>& use) override {
    file_->read_each(slots, use);
  }
  void write(std::span<const std::int64_t> slots,
             const std::function<void(std::size_t, float*)>& fill) override {
    file_->write_each(slots, fill);
  }

 private:
  void move_some(std::span<const RowCache::Move> moves, Pace pace) {
    const MovedSlots slots(moves);
    const auto width = static_cast<std::size_t>(file_->width());
    std::vector<float> memory(2 * moves.size() * width);
    const auto row_at = [&](std::size_t place, std::int64_t) { return memory.data() + place * width; };
    std::vector<float*> coming;
    std::vector<const float*> leaving;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      if (moves[i].out >= 0) leaving.push_back(row_at(2 * i, moves[i].out));
      if (moves[i].in >= 0) coming.push_back(row_at(2 * i + 1, moves[i].in));
    }
    file_->read(slots.in, coming);
    exchange_.start(moves, pace, row_at);
    exchange_.settle();
    file_->write(slots.out, leaving);
  }

  std::unique_ptr<RowFile> file_;
  LineExchange& exchange_;
};

}  // namespace

std::unique_ptr<RowsBelow> rows_in_file(std::unique_ptr<RowFile> file, LineExchange& exchange) {
  return std::make_unique<RowsInFile>(std::move(file), exchange);
}

}  // namespace hstu
