// A model with its objective, its embedding tables, and the optimizers that update both.
#pragma once

#include <memory>

#include "hstu/batching/bad_ids.h"
#include "hstu/comm/exchange_queue.h"
#include "hstu/comm/groups.h"
#include "hstu/dataset/mapped_column.h"
#include "hstu/embedding/catalogue.h"
#include "hstu/embedding/row_lookup.h"
#include "hstu/embedding/row_visits.h"
#include "hstu/embedding/table_set.h"
#include "hstu/model/model.h"
#include "hstu/objective/objective.h"
#include "hstu/optimizer/dense_optimizer.h"
#include "hstu/optimizer/update_check.h"
#include "hstu/options/options.h"

namespace hstu {

struct Learner {
  // Moves the model to the device of `compute`. The tables are where options.tables places them; the ranks of
  // `comm` share them.
  Learner(const RunOptions& options, std::unique_ptr<Model> model, std::unique_ptr<Objective> objective,
          Context compute = host_context(), Communicator& comm = one_rank());

  // The streams that read batches: of the model and of the tables.
  std::vector<Stream> streams() const;

  // Makes the catalogues of the objective, of the items `ids`: ascending, the same on all ranks; attributes
  // of items are those of `dataset`. Their rows come into being by the first update; until then they are read
  // as they begin. Throws what Catalogue throws.
  void open_catalogues(const std::vector<std::int64_t>& ids, const Dataset& dataset);
  // Ascending ids of the items that the model knows: of the rows of the table of items and, of those of a
  // dataset, `ids`, the ones that the table may have, if the model learnt from that dataset, or if attributes
  // tell of items that it has not seen. An item without a row is read as rows begin.
  std::vector<std::int64_t> known_items(std::vector<std::int64_t> ids, bool learnt) const;
  // Whether a step updates all rows of a catalogue, with a gradient or without one.
  bool updates_all(const Catalogue& catalogue) const;
  // As passes read them, which may not outlive the learner; with_gradients: those of the loss.
  std::vector<CatalogueRows> catalogue_rows(bool with_gradients) const;
  // block (n, E): rows first .. first + n - 1 of a catalogue as the model reads them, for `compute`.
  void read(const Catalogue& catalogue, std::int64_t first, Tensor& block) const;

  RunOptions options;
  Context compute;
  std::unique_ptr<Model> model;
  std::unique_ptr<Objective> objective;
  std::unique_ptr<DeviceTransport> gpus;  // of the ranks; null: one rank, or ranks on processors
  TableSet tables;                        // one per feature, in the order of Model::features()
  Tensor gradient_of_loss;  // (1): 1, which no loss overwrites; kept, as a copy ends a group of launches
  Context exchange;         // of sums over GPUs, beside `compute`
  ExchangeQueue exchanges;  // of all ranks, beside the passes of a step; on GPUs in `exchange`
  std::unique_ptr<DividedRanks> divided;  // among which heads or long samples are divided; null: none are
  Groups groups;                          // of several ranks, in `compute`
  Stream copies;                          // of scores to the host, beside `compute`
  DenseOptimizer dense_optimizer;
  // Null where the host sees the gradients before the update: on processors, with several ranks, and for
  // tables with limits or with rows outside of the GPU's memory.
  std::unique_ptr<UpdateCheck> update_check;
  std::vector<std::unique_ptr<Catalogue>> catalogues;  // of Objective::catalogues(), in its order
  BadIds bad_ids;                                      // of training
  const MappedColumn* event_times = nullptr;  // of the dataset, in seconds; null: tables have no time
  // By table: the column of its custom score (RowLimits::score_column) by event of the dataset, or null.
  std::vector<const MappedColumn*> scores;

  // The lookup of the next step's first part, if it has begun (lookup_ahead.h).
  struct Ahead {
    std::unique_ptr<RowLookup> lookup;
    std::int64_t batch = 0;  // Batch::number of that part
  };
  Ahead ahead;  // last: its memory is the tables'
};

// The rows of a batch: what RowGradients needs of them, and leaves of a tape, one variable per feature.
struct BatchRows {
  RowSelection selection;
  std::vector<Variable> leaves;
  Event ready;  // the leaves: work on another stream that reads them waits for it
};
// Tables on a GPU may work on a stream of their own, beside the model: this one looks rows up while the model
// computes on what `compute` holds already. Tables that ranks share: all ranks call it together. For training
// it finishes the lookup that has begun ahead, if any, which must be of this batch. `into`: where the rows
// go, a tensor for each feature, of tables that ranks do not share; empty: into new memory.
BatchRows look_up(Learner& learner, const Batch& batch, RowAccess access, std::span<const Tensor> into = {});

// Tables whose rows move between ranks, which call it together: begins the lookup of a batch of a later step.
void begin_ahead(Learner& learner, const Batch& batch);

// Adds the occurrences of the batch's ids, by token: those of an item's attributes are those of the item. The
// value of a custom score is that of the sample's anchor; an id has the largest one of the samples it is in.
// `selection`: of this batch.
void count_visits(const Learner& learner, const Batch& batch, const RowSelection& selection,
                  RowVisits& visits);

// Brings the rows of a batch that a later step will read into the caches of tables, beside what the model
// computes. Changes no result.
void prefetch_rows(Learner& learner, const Batch& batch);

}  // namespace hstu
