#include "hstu/embedding/saved_rows.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/comm/communicator.h"

namespace hstu {
namespace {

using Places = std::span<const EmbeddingTable::Place>;

void read_places(const EmbeddingTable& table, Places places, bool state, float* out) {
  table.read(places, state ? nullptr : out, state ? out : nullptr);
}

std::vector<std::int64_t> ids_of(Places places) {
  std::vector<std::int64_t> ids;
  ids.reserve(places.size());
  for (const auto& place : places) ids.push_back(place.id);
  return ids;
}

std::vector<std::int64_t> history_of(const EmbeddingTable& table, Places places) {
  std::vector<std::int64_t> seen(places.size()), scores(places.size()), both;
  table.read_history(places, seen.data(), scores.data());
  for (std::size_t i = 0; i < places.size(); ++i) both.insert(both.end(), {seen[i], scores[i]});
  return both;
}

std::vector<EmbeddingTable::Place> places_of(const EmbeddingTable& table, RowsToSave which) {
  return which == RowsToSave::all ? table.places_by_id() : table.changed_by_id();
}

class WholeTable final : public SavedRows {
 public:
  WholeTable(const EmbeddingTable& table, RowsToSave which)
      : table_(table), places_(places_of(table, which)), ids_(ids_of(places_)) {}
  std::span<const std::int64_t> ids() const override { return ids_; }
  std::vector<std::int64_t> all_ids() override { return ids_of(table_.places_by_id()); }
  void read(std::size_t first, std::size_t count, bool state, float* out) override {
    read_places(table_, Places(places_).subspan(first, count), state, out);
  }
  void read_history(std::size_t first, std::size_t count, std::int64_t* out) override {
    const auto history = history_of(table_, Places(places_).subspan(first, count));
    std::copy(history.begin(), history.end(), out);
  }
  WaitingIds::List waiting() override { return table_.waiting().by_id(); }
  RowCounts counts() override { return table_.counts(); }

 private:
  const EmbeddingTable& table_;
  std::vector<EmbeddingTable::Place> places_;
  std::vector<std::int64_t> ids_;
};

// What rank 0 asks of the others.
struct Question {
  enum Kind : std::int64_t { ids, all_ids, rows, state, history, waiting, counts, done };
  std::int64_t kind = done, table = 0;
  // rows, state and history: of the ids in [low, high). ids: `low` is RowsToSave. done: 1 in `low` begins
  // changes.
  std::int64_t low = 0, high = 0;
};

Question asked(Question question, Communicator& comm) {
  std::array<std::int64_t, 4> words{question.kind, question.table, question.low, question.high};
  comm.broadcast(std::span<std::int64_t>(words), 0);
  return {words[0], words[1], words[2], words[3]};
}

// To rank 0 what each rank has, those of rank 0 first; the others get nothing.
template <typename T>
std::vector<T> to_rank_0(std::span<const T> mine, Communicator& comm) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 0);
  counts.front() = static_cast<std::int64_t>(mine.size());
  return comm.all_to_all(mine, counts);
}

// What one rank has of a table: some rows, or some columns of all of them.
class PartOfTable {
 public:
  PartOfTable(const EmbeddingTable& table, RowsToSave which)
      : table_(table), places_(places_of(table, which)) {}

  std::vector<std::int64_t> send_ids(Communicator& comm) const { return send_ids_of(places_, comm); }
  std::vector<std::int64_t> send_all_ids(Communicator& comm) const {
    return send_ids_of(table_.places_by_id(), comm);
  }
  std::vector<float> send_rows(const Question& question, Communicator& comm) const {
    const bool state = question.kind == Question::state;
    const Places mine = asked_for(question);
    std::vector<float> values(mine.size() *
                              static_cast<std::size_t>(state ? table_.stored_state_width() : table_.width()));
    read_places(table_, mine, state, values.data());
    return to_rank_0(std::span<const float>(values), comm);
  }
  std::vector<std::int64_t> send_history(const Question& question, Communicator& comm) const {
    std::vector<std::int64_t> mine;
    if (table_.owners().reports()) mine = history_of(table_, asked_for(question));
    return to_rank_0(std::span<const std::int64_t>(mine), comm);
  }
  // Pairs of an id and its count.
  std::vector<std::int64_t> send_waiting(Communicator& comm) const {
    const WaitingIds::List list = table_.waiting().by_id();
    std::vector<std::int64_t> mine;
    for (std::size_t i = 0; i < list.ids.size() && table_.owners().reports(); ++i)
      mine.insert(mine.end(), {list.ids[i], list.counts[i]});
    return to_rank_0(std::span<const std::int64_t>(mine), comm);
  }

 private:
  std::vector<std::int64_t> send_ids_of(Places places, Communicator& comm) const {
    const std::vector<std::int64_t> mine =
        table_.owners().reports() ? ids_of(places) : std::vector<std::int64_t>();
    return to_rank_0(std::span<const std::int64_t>(mine), comm);
  }
  Places asked_for(const Question& question) const {
    const auto at = [&](std::int64_t id) {
      return std::lower_bound(places_.begin(), places_.end(), id,
                              [](const auto& place, std::int64_t bound) { return place.id < bound; });
    };
    return {at(question.low), at(question.high)};
  }

  const EmbeddingTable& table_;
  std::vector<EmbeddingTable::Place> places_;
};

// Rank 0's view of a table whose rows move.
class SharedTable final : public SavedRows {
 public:
  SharedTable(const TableSet& tables, std::size_t t, RowsToSave which)
      : tables_(tables),
        t_(t),
        mine_(
            (ask({Question::ids, static_cast<std::int64_t>(t), static_cast<std::int64_t>(which)}), tables[t]),
            which),
        ids_(mine_.send_ids(tables.comm())) {
    std::sort(ids_.begin(), ids_.end());
  }
  std::span<const std::int64_t> ids() const override { return ids_; }
  std::vector<std::int64_t> all_ids() override {
    ask({Question::all_ids, static_cast<std::int64_t>(t_)});
    std::vector<std::int64_t> all = mine_.send_all_ids(tables_.comm());
    std::sort(all.begin(), all.end());
    return all;
  }

  void read(std::size_t first, std::size_t count, bool state, float* out) override {
    if (count == 0) return;
    const Question question{state ? Question::state : Question::rows, static_cast<std::int64_t>(t_),
                            ids_[first], ids_[first + count - 1] + 1};
    ask(question);
    const std::vector<float> values = mine_.send_rows(question, tables_.comm());
    const EmbeddingTable& table = tables_[t_];
    if (table.owners().by_column()) return join_columns(values, count, state, out);
    const auto width = static_cast<std::size_t>(state ? table.state_width() : table.config().dim);
    require(values.size() == count * width, "table {}: expected {} values, found {}", table.config().name,
            count * width, values.size());
    in_order_of_ids(values, first, count, width, out);
  }
  void read_history(std::size_t first, std::size_t count, std::int64_t* out) override {
    if (count == 0) return;
    const Question question{Question::history, static_cast<std::int64_t>(t_), ids_[first],
                            ids_[first + count - 1] + 1};
    ask(question);
    in_order_of_ids(mine_.send_history(question, tables_.comm()), first, count, 2, out);
  }
  WaitingIds::List waiting() override {
    ask({Question::waiting, static_cast<std::int64_t>(t_)});
    const std::vector<std::int64_t> pairs = mine_.send_waiting(tables_.comm());
    std::vector<std::pair<std::int64_t, std::int64_t>> sorted;
    for (std::size_t i = 0; i < pairs.size(); i += 2) sorted.emplace_back(pairs[i], pairs[i + 1]);
    std::sort(sorted.begin(), sorted.end());
    WaitingIds::List list;
    for (const auto& [id, count] : sorted) {
      list.ids.push_back(id);
      list.counts.push_back(count);
    }
    return list;
  }
  RowCounts counts() override {
    ask({Question::counts, static_cast<std::int64_t>(t_)});
    return counts_of_all_ranks(tables_[t_], tables_.comm());
  }

 private:
  // From rank by rank, each of which has some columns of every row.
  void join_columns(const std::vector<float>& values, std::size_t count, bool state, float* out) const {
    const EmbeddingTable& table = tables_[t_];
    const std::int64_t dim = table.config().dim;
    const RowOptimizer::StateShape shape =
        state ? table.optimizer().state_shape() : RowOptimizer::StateShape{.by_column = 1};
    const float* from = values.data();
    for (int r = 0; r < table.owners().ranks; ++r) {
      const std::int64_t first = table.owners().first_column(r, dim),
                         columns = table.owners().columns(r, dim);
      for (std::size_t i = 0; i < count; ++i) {
        float* const row = out + static_cast<std::int64_t>(i) * (shape.by_column * dim + shape.by_row);
        for (std::int64_t b = 0; b < shape.by_column; ++b, from += columns)
          std::copy_n(from, columns, row + b * dim + first);
        std::copy_n(from, shape.by_row, row + shape.by_column * dim);  // the same on every rank
        from += shape.by_row;
      }
    }
    require(from == values.data() + values.size(), "table {}: expected {} values, found {}",
            table.config().name, from - values.data(), values.size());
  }
  // From rank by rank, each by ascending id: the k-th row of a rank is that of the k-th id that it owns.
  template <typename T>
  void in_order_of_ids(const std::vector<T>& values, std::size_t first, std::size_t count, std::size_t width,
                       T* out) const {
    std::vector<std::size_t> next(static_cast<std::size_t>(tables_.comm().size()), 0);
    for (std::size_t i = 0; i < count; ++i) ++next[owner(first + i)];
    std::size_t begin = 0;
    for (std::size_t& of_rank : next) begin += std::exchange(of_rank, begin);
    for (std::size_t i = 0; i < count; ++i)
      std::copy_n(values.data() + next[owner(first + i)]++ * width, width, out + i * width);
  }
  void ask(const Question& question) const { asked(question, tables_.comm()); }
  std::size_t owner(std::size_t i) const {
    const RowOwners& owners = tables_[t_].owners();
    return owners.by_row() ? static_cast<std::size_t>(owners.owner(ids_[i])) : 0;
  }

  const TableSet& tables_;
  std::size_t t_;
  PartOfTable mine_;
  std::vector<std::int64_t> ids_;  // of all ranks, ascending
};

}  // namespace

RowCounts counts_of_all_ranks(const EmbeddingTable& table, Communicator& comm) {
  RowCounts counts = table.counts();
  if (!table.owners().is_distributed()) return counts;
  if (!table.owners().reports()) counts = {};
  std::array<std::int64_t*, 7> all{&counts.inserted, &counts.admitted, &counts.refused, &counts.evicted,
                                   &counts.expired,  &counts.hits,     &counts.misses};
  std::array<std::int64_t, 7> sums{};
  for (std::size_t i = 0; i < all.size(); ++i) sums[i] = *all[i];
  comm.all_reduce_sum(std::span<std::int64_t>(sums));
  for (std::size_t i = 0; i < all.size(); ++i) *all[i] = sums[i];
  return counts;
}

std::unique_ptr<SavedRows> saved_rows(const TableSet& tables, std::size_t t, RowsToSave which) {
  if (tables[t].owners().is_distributed()) return std::make_unique<SharedTable>(tables, t, which);
  return std::make_unique<WholeTable>(tables[t], which);
}

void serve_rows(TableSet& tables) {
  if (!tables.is_distributed()) return;
  std::unique_ptr<PartOfTable> part;
  Communicator& comm = tables.comm();
  Question q = asked({}, comm);
  for (; q.kind != Question::done; q = asked({}, comm)) {
    const EmbeddingTable& table = tables[static_cast<std::size_t>(q.table)];
    if (q.kind == Question::rows || q.kind == Question::state) part->send_rows(q, comm);
    if (q.kind == Question::history) part->send_history(q, comm);
    if (q.kind == Question::waiting) part->send_waiting(comm);
    if (q.kind == Question::counts) counts_of_all_ranks(table, comm);
    if (q.kind == Question::all_ids) part->send_all_ids(comm);
    if (q.kind != Question::ids) continue;
    part = std::make_unique<PartOfTable>(table, static_cast<RowsToSave>(q.low));
    part->send_ids(comm);
  }
  if (q.low == 1) tables.begin_changes();
}

ServedRows::~ServedRows() {
  if (begins_changes_) tables_.begin_changes();
  if (!tables_.is_distributed()) return;
  try {
    asked({.low = begins_changes_ ? 1 : 0}, tables_.comm());
  } catch (const Error&) {  // a rank has ended: the next collective reports it
  }
}

}  // namespace hstu
