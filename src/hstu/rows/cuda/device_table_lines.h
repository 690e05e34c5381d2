// DeviceTableLines: the records of all tables of a placement in a GPU's memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hstu/rows/cuda/device_records.h"
#include "hstu/rows/table_lines.h"

namespace hstu::cuda {

class DeviceTableLines final : public TableLines {
 public:
  DeviceTableLines(std::span<const PlacedTable> tables, const Context& context);

  DeviceRecords& of(std::size_t table) override { return *records_[table]; }
  const DeviceRecords& of(std::size_t table) const { return *records_[table]; }
  void gather(std::span<const List> lists) const override;
  void place(std::span<const WireRows> rows) const override { from_wire(rows, context_.stream); }
  void update(std::span<const List> lists, const RowUpdate& update) override;
  void merge(std::span<const List> lists, bool is_first_part) override;

 private:
  Context context_;
  std::vector<RowOptimizer> optimizers_;
  std::vector<std::unique_ptr<DeviceRecords>> records_;
};

// For the kernels. `table`: that of the list.
RowList row_list(const TableLines::List& list, const RowTable& table, std::uint32_t number = 0);

}  // namespace hstu::cuda
