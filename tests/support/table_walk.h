// A random walk over the operations of tables with limits, compared with TableModel after every step. The
// numbers come from a function, so that tests draw them and fuzzing chooses them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/embedding/row_visits.h"
#include "support/table_model.h"
#include "support/table_rows.h"

namespace hstu::testing_embedding {

// The next number in [0, bound).
using Numbers = std::function<std::int64_t(std::int64_t bound)>;

class TableWalk {
 public:
  // The rows are in the memory of `where`, behind a cache of `cache_rows` if these are not 0, and in files of
  // `disk`, below a cache of `host_rows`, if that is not empty.
  TableWalk(const RowLimits& limits, std::int64_t ids, Numbers numbers, std::int64_t cache_rows = 0,
            Context where = host_context(), const Path& disk = {}, std::int64_t host_rows = 0)
      : numbers_(std::move(numbers)),
        where_(std::move(where)),
        config_{.name = "t",
                .rows = ids,
                .dim = 1,
                .limits = limits,
                .initial = {.kind = InitialKind::constant, .value = 1.0},
                .place = disk.empty() ? TableTier::device : TableTier::disk,
                .cache_rows = cache_rows,
                .host_rows = host_rows,
                .disk_folder = disk},
        tables_(std::make_unique<TableSet>(std::vector{config_}, RowOptimizer{}, 1, where_)),
        model_(ids, limits) {}

  // A step of one to three parts, sometimes with lookups whose step never ends, or a save and a load.
  // Throws InternalError where the table and the model differ.
  void step() {
    constexpr double kRate = 0.5;
    RowVisits visits(*tables_);
    std::map<std::int64_t, TableModel::Seen> seen;
    std::vector<std::vector<std::int64_t>> parts;
    const std::int64_t count = 1 + numbers_(3);
    for (std::int64_t p = 0; p < count; ++p) parts.push_back(part(visits, seen));
    std::vector<std::int64_t> ids;
    std::vector<float> gradients;
    std::set<std::int64_t> done;
    for (const std::vector<std::int64_t>& part_ids : parts) {
      for (const std::int64_t id : part_ids) {
        if (!done.insert(id).second || seen[id].gradient == 0) continue;
        ids.push_back(id);
        gradients.push_back(seen[id].gradient);
      }
    }
    apply_gradients(table(), ids, gradients.data(), kRate);
    if (numbers_(16) == 0) look_up_and_forget();
    time_ += numbers_(8) == 0 ? numbers_(400) : numbers_(4);
    const std::int64_t time = time_ - numbers_(3);
    if (numbers_(2) == 0) prefetch();
    visits.end_step(one_rank(), time);
    tables_->end_step();
    model_.step(seen, time, kRate);
    if (numbers_(32) == 0) reload();
    compare();
  }

  const RowCounts& counts() const { return model_.counts(); }

 private:
  EmbeddingTable& table() { return (*tables_)[0]; }

  // Half of the ids are of the lowest eighth, and some are outside the table.
  std::int64_t draw_id() {
    const std::int64_t kind = numbers_(32);
    if (kind == 0) return config_.rows + numbers_(3);
    if (kind == 1) return -1 - numbers_(3);
    return numbers_(kind < 16 ? std::max<std::int64_t>(1, config_.rows / 8) : config_.rows);
  }

  // The ids of a part.
  std::vector<std::int64_t> part(RowVisits& visits, std::map<std::int64_t, TableModel::Seen>& seen) {
    std::set<std::int64_t> distinct;
    const std::int64_t size = numbers_(24);
    for (std::int64_t i = 0; i < size; ++i) distinct.insert(draw_id());
    std::vector<std::int64_t> ids(distinct.begin(), distinct.end()), occurrences, values;
    if (numbers_(2) == 0) std::reverse(ids.begin(), ids.end());
    for (const std::int64_t id : ids) {
      occurrences.push_back(1 + (numbers_(4) == 0 ? numbers_(9) : 0));
      TableModel::Seen& total = seen[id];
      total.occurrences += occurrences.back();
      values.push_back(config_.limits.evict == Evict::custom ? numbers_(90) - 40 : 0);
      total.value = std::max(total.value, values.back());
      if (total.gradient == 0) total.gradient = static_cast<float>(numbers_(3) - 1);
    }
    const Handles selected = table().select(ids, RowAccess::train);
    check_values(ids, selected);
    visits.add(0, ids, occurrences, numbers(selected.host_slots), values);
    return ids;
  }

  void check_values(const std::vector<std::int64_t>& ids, const Handles& selected) {
    const std::vector<float> values = rows_of(table(), selected);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      require(values[i] == model_.value(ids[i]), "id {}: the model has {}, the table {}", ids[i],
              model_.value(ids[i]), values[i]);
    }
  }

  // Of ids that the next step may read, or not.
  void prefetch() {
    std::set<std::int64_t> distinct;
    for (std::int64_t i = numbers_(24); i > 0; --i) distinct.insert(draw_id());
    const std::vector<std::int64_t> ids(distinct.begin(), distinct.end());
    tables_->prefetch(std::vector{Tensor::from<std::int64_t>({static_cast<std::int64_t>(ids.size())}, ids)});
  }

  // A forward pass without its step.
  void look_up_and_forget() {
    std::vector<std::int64_t> ids{draw_id()};
    table().select(ids, RowAccess::train);
  }

  // Through the arrays of a checkpoint into a new table.
  void reload() {
    const auto places = table().places_by_id();
    std::vector<std::int64_t> ids, seen(places.size()), scores(places.size());
    for (const auto& place : places) ids.push_back(place.id);
    std::vector<float> values(places.size()), state(places.size());
    table().read(places, values.data(), state.data());
    table().read_history(places, seen.data(), scores.data());
    const WaitingIds::List waiting = table().waiting().by_id();
    const RowLimiter::State keeper = table().limits_state();
    tables_ = std::make_unique<TableSet>(std::vector{config_}, RowOptimizer{}, 1, where_);
    table().restore(ids, values.data(), state.data());
    table().restore_history(keeper, ids, seen, scores, waiting.ids, waiting.counts);
  }

  void compare() {
    const auto places = table().places_by_id();
    require(places.size() == model_.rows().size(), "the model has {} rows, the table {}",
            model_.rows().size(), places.size());
    std::vector<float> values(places.size()), state(places.size());
    table().read(places, values.data(), state.data());
    std::vector<std::int64_t> ids;
    std::size_t i = 0;
    for (const auto& [id, row] : model_.rows()) {
      require(places[i].id == id && values[i] == row.value && state[i] == row.state,
              "row {} of the model: id {}, {}, {}; of the table: id {}, {}, {}", i, id, row.value, row.state,
              places[i].id, values[i], state[i]);
      ++i;
    }
    ids.resize(static_cast<std::size_t>(config_.rows) + 2);
    std::iota(ids.begin(), ids.end(), -1);
    check_values(ids, table().select(ids, RowAccess::read));
    const WaitingIds::List waiting = table().waiting().by_id();
    require(waiting.ids.size() == model_.waiting().size(), "the model has {} waiting ids, the table {}",
            model_.waiting().size(), waiting.ids.size());
    i = 0;
    for (const auto& [id, count] : model_.waiting()) {
      require(waiting.ids[i] == id && waiting.counts[i] == count,
              "id {} waits with {}, in the table {} with {}", id, count, waiting.ids[i], waiting.counts[i]);
      ++i;
    }
    const auto all = [](const RowCounts& c) {
      return std::vector{c.inserted, c.admitted, c.refused, c.evicted, c.expired, c.hits, c.misses};
    };
    require(all(model_.counts()) == all(table().counts()), "the model counts {}, the table {}",
            fmt::join(all(model_.counts()), " "), fmt::join(all(table().counts()), " "));
  }

  Numbers numbers_;
  Context where_;
  TableConfig config_;
  std::unique_ptr<TableSet> tables_;
  TableModel model_;
  std::int64_t time_ = 1000;
};

}  // namespace hstu::testing_embedding
