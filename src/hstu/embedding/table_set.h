// TableSet: the embedding tables of a model, in the order of its features, with operations over all of them:
// select rows, gather rows, update rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/comm/device_transport.h"
#include "hstu/embedding/table.h"
#include "hstu/rows/unique.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// The rows that one batch reads, on the device of the tables. `ids` belong to the caller and must outlive it.
struct SentRows;
struct RowSelection {
  struct OfTable {
    Tensor ids;    // (n) i64, each once
    Tensor slots;  // (n) i64; of a placed table on a GPU: lines (row_lines.h)
    // Of a table whose ids the host looks up, in host memory: ids, those of the caller; slots.
    Tensor host_ids = {}, host_slots = {};
    // Of a placed table in evaluation: rows (m, D) f32 that come from below its cache, and their places (m)
    // i32 among the ids.
    Tensor below = {}, places_below = {};
  };
  std::vector<OfTable> tables;  // one per table
  std::shared_ptr<const SentRows>
      sent;  // in place of slots: rows that other ranks' GPUs have (device_lookup.h)
};

// In which rows of tables on several GPUs travel: f32, bf16 or f16.
struct WireTypes {
  DType rows = DType::f32, gradients = DType::f32;
};

// The first row of gradients that has a value that is not finite.
struct BadRow {
  std::size_t table = 0;
  std::int64_t row = 0;  // of the selection
};

class TableSet {
 public:
  // The rows are in the memory of `where`, and every tensor below is there. `owners`: of each table
  // (table_division.h); empty: there is one rank. Throws UsageError if two tables have the same name.
  TableSet(const std::vector<TableConfig>& configs, RowOptimizer optimizer, std::uint64_t seed,
           Context where = host_context(), std::span<const RowOwners> owners = {});

  // Looks up ids[t] (n_t) i64, each once, in table t. `host_ids`: the same in host memory, which placed
  // tables on a GPU need.
  RowSelection select(std::span<const Tensor> ids, RowAccess access, std::span<const Tensor> host_ids = {});
  // The same of placed tables on a GPU alone. `distinct`: of tables whose ids may repeat; empty: of none.
  RowSelection select_placed(std::span<const Tensor> ids, RowAccess access, std::span<const Tensor> host_ids,
                             std::span<const UniqueIds> distinct = {});
  // The same into slots[t] (n_t) i64, for `groups` groups of size() lists, one after another: an id is once
  // in a list, and may be in several groups. On a GPU without placed tables.
  void find_slots(std::span<const Tensor> ids, RowAccess access, std::span<Tensor> slots,
                  std::size_t groups = 1);
  // The selected rows: (n_t, D) in f32, one tensor per table.
  std::vector<Tensor> gather(const RowSelection& selection) const;
  void gather(const RowSelection& selection, std::span<Tensor> rows) const;
  // The number of the step whose updates follow (RowStore::begin_updates).
  void begin_updates(std::int64_t step);
  // Updates the selected rows by gradients (n_t, D) in f32, one tensor per table; an undefined one leaves its
  // table unchanged. The rows must be selected with RowAccess::train. `factor`, not null: (1) in the memory
  // of the GPU; nothing is updated if it is NaN (UpdateCheck::factor()).
  void update(const RowSelection& selection, std::span<const Tensor> gradients, double learning_rate,
              const float* factor = nullptr);

  // Tables behind a cache: brings rows of ids[t] (n_t) i64 in host memory, each once, into it, where there is
  // room beside the rows of this step, while the device computes. Undefined: none of that table. Changes no
  // result.
  void prefetch(std::span<const Tensor> ids);
  // After the update of a step: the rows that it has selected may leave caches.
  void end_step();

  std::optional<BadRow> first_not_finite(std::span<const Tensor> gradients) const;
  // On a GPU: one call per part of a batch, in order. Adds the gradient of each row that an earlier part
  // selected to the gradient there, and removes the row from this selection.
  void merge(const RowSelection& selection, std::span<const Tensor> gradients, bool is_first_part);

  // Before the first row: the ranks of `comm`, which are several, share the tables; `gpus` joins the GPUs
  // that hold them (null: they are on the host). Both must outlive the tables. The owners are those of the
  // rank of `comm`. shared_rows.h, or device_lookup.h and device_gradients.h, move rows.
  void share_over(Communicator& comm, DeviceTransport* gpus, WireTypes wire = {});
  // Lookups read rows that other ranks have, of one table at least.
  bool moves_rows() const;
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
  RowSelection::OfTable place(EmbeddingTable& table, const Tensor& ids, const Tensor& host_ids,
                              const UniqueIds* distinct, RowAccess access);

  Context where_;
  TransferBlocks uploads_, downloads_;
  std::vector<std::unique_ptr<EmbeddingTable>> tables_;
  Communicator* comm_ = &one_rank();
  DeviceTransport* gpus_ = nullptr;
  WireTypes wire_;
  Tensor beyond_wire_;
};

}  // namespace hstu
