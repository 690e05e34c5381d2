#include "hstu/device/pinned_memory.h"
#include "hstu/rows/row_storage.h"
#include "hstu/rows/rows_below.h"

namespace hstu {
namespace {

class RowsInMemory final : public RowsBelow {
 public:
  RowsInMemory(const RowShape& shape, const RowDirectory& directory, Device device, LineExchange& exchange)
      : directory_(directory),
        rows_(stored_floats(shape), transfer_memory(device),
              below_chunk_bytes(stored_floats(shape), shape.rows), shape.rows),
        exchange_(exchange) {}

  std::int64_t bytes() const override { return rows_.bytes(); }

  void move(std::span<const RowCache::Move> moves, Pace pace) override {
    rows_.grow(directory_.slots());
    exchange_.start(moves, pace, [&](std::size_t, std::int64_t slot) { return rows_.row(slot); });
  }
  void read(std::span<const std::int64_t> slots,
            const std::function<void(std::size_t, const float*)>& use) override {
    exchange_.settle();
    for_rows(slots.size(), rows_.width(), [&](std::size_t i) { use(i, rows_.row(slots[i])); });
  }
  void write(std::span<const std::int64_t> slots,
             const std::function<void(std::size_t, float*)>& fill) override {
    exchange_.settle();  // a slot may be that of a row that left
    rows_.grow(directory_.slots());
    for_rows(slots.size(), rows_.width(), [&](std::size_t i) { fill(i, rows_.row(slots[i])); });
  }

 private:
  const RowDirectory& directory_;
  RowStorage rows_;
  LineExchange& exchange_;
};

}  // namespace

std::unique_ptr<RowsBelow> rows_in_memory(const RowShape& shape, const RowDirectory& directory, Device device,
                                          LineExchange& exchange) {
  return std::make_unique<RowsInMemory>(shape, directory, device, exchange);
}

}  // namespace hstu
