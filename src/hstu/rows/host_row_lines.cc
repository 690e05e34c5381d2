// The forms of RowLines and TableLines for the host: the specification of the GPU's.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "hstu/rows/host_merge.h"
#include "hstu/rows/row_format.h"
#include "hstu/rows/row_lines.h"
#include "hstu/rows/row_storage.h"
#include "hstu/rows/table_lines.h"

namespace hstu {
namespace {

class HostRowLines final : public RowLines {
 public:
  explicit HostRowLines(const RowShape& shape)
      : shape_(shape), format_(shape), rows_(stored_floats(shape)), width_(shape.dim + shape.state_width) {}

  const Context& context() const override { return host_context(); }
  std::int64_t bytes() const override { return rows_.bytes(); }
  void grow(std::int64_t lines) override {
    rows_.grow(lines);
    updated_.resize(std::max(updated_.size(), static_cast<std::size_t>(lines)));
  }

  void set_initial_bound(float bound) override { format_.set_initial_bound(bound); }

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
  void gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> lines, float* out) const {
    for_rows(lines.size(), width_, [&](std::size_t i) {
      float* const to = out + static_cast<std::int64_t>(i) * shape_.dim;
      if (lines[i] >= 0) {
        format_.load(rows_.row(lines[i]), to);
      } else if (lines[i] == kAbsentRow) {
        format_.begin(ids[i], to);
      } else {
        std::fill_n(to, shape_.dim, 0.0f);
      }
    });
  }
  void update(std::span<const std::int64_t> ids, std::span<const std::int64_t> lines, const float* gradients,
              const RowOptimizer& optimizer, const RowUpdate& update) {
    ++number_;
    for_rows(lines.size(), width_, [&](std::size_t i) {
      if (lines[i] < 0) return;
      std::atomic_ref last(updated_[static_cast<std::size_t>(lines[i])]);
      require(last.exchange(number_, std::memory_order_relaxed) != number_,
              "expected every row once, found row {} of the update twice", i);
      const float* const gradient = gradients + static_cast<std::int64_t>(i) * shape_.dim;
      format_.update(ids[i], update.step, rows_.row(lines[i]), [&](float* values) {
        optimizer.update(update.learning_rate, shape_.dim, gradient, values, state_of(lines[i]));
      });
    });
  }

 private:
  float* state_of(std::int64_t line) { return rows_.row(line) + state_begin(shape_); }

  RowShape shape_;
  RowFormat format_;
  RowStorage rows_;
  std::int64_t width_;
  std::vector<std::uint32_t> updated_;  // by line: the number of its last update
  std::uint32_t number_ = 0;
};

class HostTableLines final : public TableLines {
 public:
  explicit HostTableLines(std::span<const PlacedTable> tables) : merge_(tables.size()) {
    for (const PlacedTable& table : tables) {
      names_.push_back(table.name);
      optimizers_.push_back(table.optimizer);
      lines_.push_back(std::make_unique<HostRowLines>(table.shape));
    }
  }

  RowLines& of(std::size_t table) override { return *lines_[table]; }
  void gather(std::span<const List> lists) const override {
    for (List list : lists)
      lines_[list.table]->gather(numbers(list.ids), numbers(list.lines), list.values.mutable_data<float>());
  }
  void place(std::span<const WireRows> rows) const override {
    for (WireRows list : rows) {
      const std::int64_t dim = list.rows.cols();
      for (std::int64_t i = 0; i < list.wire.rows(); ++i)
        std::copy_n(list.wire.data<float>() + i * dim, dim,
                    list.rows.mutable_data<float>() + list.places.data<std::int32_t>()[i] * dim);
    }
  }
  void update(std::span<const List> lists, const RowUpdate& update) override {
    for (const List& list : lists) {
      if (!list.lines.defined()) continue;
      try {
        lines_[list.table]->update(numbers(list.ids), numbers(list.lines), list.values.data<float>(),
                                   optimizers_[list.table], update);
      } catch (const InternalError& error) {
        throw InternalError(fmt::format("table \"{}\": {}", names_[list.table], error.what()));
      }
    }
  }
  void merge(std::span<const List> lists, bool is_first_part) override {
    if (is_first_part) merge_.begin();
    for (const List& list : lists)
      if (list.lines.defined()) merge_.add(list.table, list.lines, list.values);
  }

 private:
  std::vector<std::string> names_;
  std::vector<RowOptimizer> optimizers_;
  std::vector<std::unique_ptr<HostRowLines>> lines_;
  HostMerge merge_;
};

}  // namespace

std::unique_ptr<TableLines> make_table_lines(std::span<const PlacedTable> tables, const Context& where) {
  if (where.device().is_host()) return std::make_unique<HostTableLines>(tables);
  return cuda::make_table_lines(tables, where);
}

}  // namespace hstu
