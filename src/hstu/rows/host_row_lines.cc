// The form of RowLines for the host: the specification of the GPU's, and what tests of caches run on.
#include <algorithm>
#include <vector>

#include "hstu/rows/device_rows.h"
#include "hstu/rows/row_format.h"
#include "hstu/rows/row_lines.h"
#include "hstu/rows/row_storage.h"

namespace hstu {
namespace {

class HostRowLines final : public RowLines {
 public:
  explicit HostRowLines(const RowShape& shape)
      : shape_(shape), format_(shape), rows_(stored_floats(shape)), width_(shape.dim + shape.state_width) {}

  const Context& context() const override { return host_context(); }
  std::int64_t bytes() const override { return rows_.bytes(); }
  void grow(std::int64_t lines) override { rows_.grow(lines); }

  void begin(std::span<const std::int64_t> lines, std::span<const std::int64_t> ids) override {
    for_rows(lines.size(), width_, [&](std::size_t i) {
      std::vector<float> values(static_cast<std::size_t>(shape_.dim));
      format_.begin(ids[i], values.data());
      format_.store(values.data(), rows_.row(lines[i]));
      std::fill_n(state_of(lines[i]), shape_.state_width, 0.0f);
    });
  }
  void write(std::span<const std::int64_t> lines, const float* rows) override {
    for_rows(lines.size(), width_, [&](std::size_t i) {
      const float* const row = rows + static_cast<std::int64_t>(i) * width_;
      format_.store(row, rows_.row(lines[i]));
      std::copy_n(row + shape_.dim, shape_.state_width, state_of(lines[i]));
    });
  }
  void read(std::span<const std::int64_t> lines, float* rows) const override {
    for_rows(lines.size(), width_, [&](std::size_t i) {
      const float* const stored = rows_.row(lines[i]);
      float* const row = rows + static_cast<std::int64_t>(i) * width_;
      format_.load(stored, row);
      std::copy_n(stored + state_begin(shape_), shape_.state_width, row + shape_.dim);
    });
  }
  void exchange(std::span<const Exchange> rows, Pace) override {
    for_rows(rows.size(), rows_.width(), [&](std::size_t i) {
      float* const row = rows_.row(rows[i].line);
      if (rows[i].out != nullptr) std::copy_n(row, rows_.width(), rows[i].out);
      if (rows[i].in != nullptr) std::copy_n(rows[i].in, rows_.width(), row);
    });
  }
  void begin_updates(std::int64_t step) override { step_ = step; }
  void gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> lines,
              float* out) const override {
    for_rows(lines.size(), width_, [&](std::size_t i) {
      float* const to = out + static_cast<std::int64_t>(i) * shape_.dim;
      if (lines[i] >= 0) {
        format_.load(rows_.row(lines[i]), to);
      } else if (lines[i] == RowStore::kAbsent) {
        format_.begin(ids[i], to);
      } else {
        std::fill_n(to, shape_.dim, 0.0f);
      }
    });
  }
  void update(std::span<const std::int64_t> ids, std::span<const std::int64_t> lines, const float* gradients,
              const RowOptimizer& optimizer, double learning_rate) override {
    for_rows(lines.size(), width_, [&](std::size_t i) {
      if (lines[i] < 0) return;
      const float* const gradient = gradients + static_cast<std::int64_t>(i) * shape_.dim;
      format_.update(ids[i], step_, rows_.row(lines[i]), [&](float* values) {
        optimizer.update(learning_rate, shape_.dim, gradient, values, state_of(lines[i]));
      });
    });
  }

 private:
  float* state_of(std::int64_t line) { return rows_.row(line) + state_begin(shape_); }

  RowShape shape_;
  RowFormat format_;
  RowStorage rows_;
  std::int64_t width_;
  std::int64_t step_ = 0;
};

}  // namespace

std::unique_ptr<RowLines> make_row_lines(const RowShape& shape, const Context& where) {
  if (where.device().is_host()) return std::make_unique<HostRowLines>(shape);
  return cuda::make_row_lines(shape, where);
}

}  // namespace hstu
