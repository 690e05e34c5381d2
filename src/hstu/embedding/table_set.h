// TableSet: the embedding tables of a model, in the order of its features, grouped by placement, with
// operations over all of them: select rows, gather rows, update rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/comm/device_transport.h"
#include "hstu/device/transfer_blocks.h"
#include "hstu/embedding/table.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

struct SentRows;  // device_lookup.h
// The rows that one batch reads. Ids belong to the caller and must outlive it.
struct RowSelection {
  std::vector<Handles> tables;  // one per table
  // In place of handles: rows that other ranks' GPUs have.
  std::shared_ptr<const SentRows> sent = {};
};

// In which rows of tables on several GPUs travel: f32, bf16 or f16.
struct WireTypes {
  DType rows = DType::f32, gradients = DType::f32;
};

class TableSet {
 public:
  // The rows are in the memory of `where`, and every tensor below is there. `owners`: of each table
  // (table_division.h); empty: there is one rank. Throws UsageError if two tables have the same name.
  TableSet(const std::vector<TableConfig>& configs, RowOptimizer optimizer, std::uint64_t seed,
           Context where = host_context(), std::span<const RowOwners> owners = {});

  // Looks up ids[t] (n_t) i64, each once, in table t. `host_ids`: the same in host memory, which are needed
  // where the host finds the rows of tables on a GPU (EmbeddingTable::needs_host_ids).
  RowSelection select(std::span<const Tensor> ids, RowAccess access, std::span<const Tensor> host_ids = {});
  // The same of a list for each table, which may be in groups; one without ids selects nothing.
  RowSelection select(std::span<const TableIds> ids, RowAccess access);
  // The selected rows: (n_t, D) in f32, one tensor per table.
  std::vector<Tensor> gather(const RowSelection& selection) const;
  void gather(const RowSelection& selection, std::span<Tensor> rows) const;
  // Updates the selected rows by gradients (n_t, D) in f32, one tensor per table; an undefined one leaves its
  // table unchanged. The rows must be selected with RowAccess::train.
  void update(const RowSelection& selection, std::span<const Tensor> gradients, const RowUpdate& update);

  // Tables behind a cache: brings rows of ids[t] (n_t) i64 in host memory, each once, into it, where there is
  // room beside the rows of this step, while the device computes. Undefined: none of that table. Changes no
  // result.
  void prefetch(std::span<const Tensor> ids);
  // After the update of a step: the rows that it has selected may leave caches.
  void end_step();

  // One call per part of a batch, in order. Adds the gradient of each row that an earlier part selected to
  // the gradient there, and removes the row from this selection.
  void merge(const RowSelection& selection, std::span<Tensor> gradients, bool is_first_part);
  // For messages: the id of row `row` of those that are selected of table t.
  std::int64_t id_of(const RowSelection& selection, std::size_t t, std::int64_t row) const;

  // Before the first row: the ranks of `comm`, which are several, share the tables; `gpus` joins the GPUs
  // that hold them (null: they are on the host). Both must outlive the tables. The owners are those of the
  // rank of `comm`. shared_rows.h, or device_lookup.h and device_gradients.h, move rows.
  void share_over(Communicator& comm, DeviceTransport* gpus, WireTypes wire = {});
  // Lookups read rows that other ranks have, of one table at least.
  bool is_distributed() const;
  Communicator& comm() const { return *comm_; }
  DeviceTransport* gpus() const { return gpus_; }
  const WireTypes& wire() const { return wire_; }
  // Values of rows and gradients that this rank has sent and that the type of the wire could not hold: (1)
  // i64 on the tables' device, and on the host.
  Tensor wire_counter() const { return beyond_wire_; }
  std::int64_t values_beyond_wire() const;

  std::size_t size() const { return tables_.size(); }
  EmbeddingTable& operator[](std::size_t i) { return *tables_[i]; }
  const EmbeddingTable& operator[](std::size_t i) const { return *tables_[i]; }
  Device device() const { return where_.device(); }
  const Stream& stream() const { return where_.stream; }
  const Context& context() const { return where_; }

  // Host memory for numbers that come from the device.
  TransferBlocks& downloads() { return downloads_; }

  std::int64_t rows_alive() const;
  std::int64_t bytes() const;
  bool any_limits() const;
  // Whether a GPU finds, makes and updates the rows of all tables without the host.
  bool are_on_gpu() const;
  // For checkpoints that keep changes alone: EmbeddingTable::begin_changes() of all tables.
  void begin_changes();

 private:
  // The tables of one placement: its table i is tables_[tables[i]].
  struct Group {
    std::shared_ptr<Placement> rows;
    std::vector<std::size_t> tables;
  };
  // What a placement takes of a selection and its rows or gradients, by table.
  struct Lists {
    std::vector<Handles> selected;
    std::vector<Tensor> values;
  };
  // Of the tables of a group, each list with its table's number there, which selections that came over ranks
  // do not have. `defined_only`: without tables whose tensor is undefined.
  static Lists lists_of(const Group& group, const RowSelection& selection, std::span<const Tensor> values,
                        bool defined_only = false);

  Context where_;
  TransferBlocks downloads_;
  std::vector<Group> groups_;
  std::vector<std::unique_ptr<EmbeddingTable>> tables_;
  Communicator* comm_ = &one_rank();
  DeviceTransport* gpus_ = nullptr;
  WireTypes wire_;
  Tensor beyond_wire_;
};

}  // namespace hstu
