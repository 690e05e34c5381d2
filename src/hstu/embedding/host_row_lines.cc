// The form of RowLines for the host: the specification of the GPU's, and what tests of caches run on.
#include <algorithm>

#include "hstu/embedding/device_rows.h"
#include "hstu/embedding/row_lines.h"
#include "hstu/embedding/row_storage.h"

namespace hstu {
namespace {

class HostRowLines final : public RowLines {
 public:
  explicit HostRowLines(const RowShape& shape) : shape_(shape), rows_(shape.dim + shape.state_width) {}

  const Context& context() const override { return host_context(); }
  std::int64_t bytes() const override { return rows_.bytes(); }
  void grow(std::int64_t lines) override { rows_.grow(lines); }

  void begin(std::span<const std::int64_t> lines, std::span<const std::int64_t> ids) override {
    for_rows(lines.size(), rows_.width(), [&](std::size_t i) {
      float* const row = rows_.row(lines[i]);
      initial_row(shape_.key, ids[i], shape_.initial, shape_.bound, shape_.dim, row, shape_.first_column);
      std::fill_n(row + shape_.dim, shape_.state_width, 0.0f);
    });
  }
  void write(std::span<const std::int64_t> lines, const float* rows) override {
    for_rows(lines.size(), rows_.width(), [&](std::size_t i) {
      std::copy_n(rows + static_cast<std::int64_t>(i) * rows_.width(), rows_.width(), rows_.row(lines[i]));
    });
  }
  void read(std::span<const std::int64_t> lines, float* rows) const override {
    for_rows(lines.size(), rows_.width(), [&](std::size_t i) {
      std::copy_n(rows_.row(lines[i]), rows_.width(), rows + static_cast<std::int64_t>(i) * rows_.width());
    });
  }
  void exchange(std::span<const Exchange> rows) override {
    for_rows(rows.size(), rows_.width(), [&](std::size_t i) {
      float* const row = rows_.row(rows[i].line);
      if (rows[i].out != nullptr) std::copy_n(row, rows_.width(), rows[i].out);
      if (rows[i].in != nullptr) std::copy_n(rows[i].in, rows_.width(), row);
    });
  }
  void gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> lines,
              float* out) const override {
    for_rows(lines.size(), rows_.width(), [&](std::size_t i) {
      float* const to = out + static_cast<std::int64_t>(i) * shape_.dim;
      if (lines[i] >= 0)
        std::copy_n(rows_.row(lines[i]), shape_.dim, to);
      else if (lines[i] == RowStore::kAbsent)
        initial_row(shape_.key, ids[i], shape_.initial, shape_.bound, shape_.dim, to, shape_.first_column);
      else
        std::fill_n(to, shape_.dim, 0.0f);
    });
  }
  void update(std::span<const std::int64_t> lines, const float* gradients, const RowOptimizer& optimizer,
              double learning_rate) override {
    for_rows(lines.size(), rows_.width(), [&](std::size_t i) {
      if (lines[i] < 0) return;
      float* const row = rows_.row(lines[i]);
      optimizer.update(learning_rate, shape_.dim, gradients + static_cast<std::int64_t>(i) * shape_.dim, row,
                       row + shape_.dim);
    });
  }

 private:
  RowShape shape_;
  RowStorage rows_;
};

}  // namespace

std::unique_ptr<RowLines> make_row_lines(const RowShape& shape, const Context& where) {
  if (where.device().is_host()) return std::make_unique<HostRowLines>(shape);
  return cuda::make_row_lines(shape, where);
}

}  // namespace hstu
