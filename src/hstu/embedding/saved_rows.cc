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

class WholeTable final : public SavedRows {
 public:
  explicit WholeTable(const EmbeddingTable& table)
      : table_(table), places_(table.places_by_id()), ids_(ids_of(places_)) {}
  std::span<const std::int64_t> ids() const override { return ids_; }
  void read(std::size_t first, std::size_t count, bool state, float* out) override {
    read_places(table_, Places(places_).subspan(first, count), state, out);
  }

 private:
  const EmbeddingTable& table_;
  std::vector<EmbeddingTable::Place> places_;
  std::vector<std::int64_t> ids_;
};

// What rank 0 asks of the others.
struct Question {
  enum Kind : std::int64_t { ids, rows, state, done };
  std::int64_t kind = done, table = 0;
  std::int64_t low = 0, high = 0;  // rows and state: of the ids in [low, high)
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

// One rank's part of a split table.
class PartOfTable {
 public:
  explicit PartOfTable(const EmbeddingTable& table) : table_(table), places_(table.places_by_id()) {}

  std::vector<std::int64_t> send_ids(Communicator& comm) const {
    const std::vector<std::int64_t> mine = ids_of(places_);
    return to_rank_0(std::span<const std::int64_t>(mine), comm);
  }
  std::vector<float> send_rows(const Question& question, Communicator& comm) const {
    const auto at = [&](std::int64_t id) {
      return std::lower_bound(places_.begin(), places_.end(), id,
                              [](const auto& place, std::int64_t bound) { return place.id < bound; });
    };
    const bool state = question.kind == Question::state;
    const Places mine(at(question.low), at(question.high));
    std::vector<float> values(mine.size() *
                              static_cast<std::size_t>(state ? table_.state_width() : table_.config().dim));
    read_places(table_, mine, state, values.data());
    return to_rank_0(std::span<const float>(values), comm);
  }

 private:
  const EmbeddingTable& table_;
  std::vector<EmbeddingTable::Place> places_;
};

// Rank 0's view.
class SplitTable final : public SavedRows {
 public:
  SplitTable(const TableSet& tables, std::size_t t)
      : tables_(tables),
        t_(t),
        mine_((ask({Question::ids, static_cast<std::int64_t>(t)}), tables[t])),
        ids_(mine_.send_ids(tables.comm())) {
    std::sort(ids_.begin(), ids_.end());
  }
  std::span<const std::int64_t> ids() const override { return ids_; }

  void read(std::size_t first, std::size_t count, bool state, float* out) override {
    if (count == 0) return;
    const Question question{state ? Question::state : Question::rows, static_cast<std::int64_t>(t_),
                            ids_[first], ids_[first + count - 1] + 1};
    ask(question);
    const std::vector<float> values = mine_.send_rows(question, tables_.comm());
    const EmbeddingTable& table = tables_[t_];
    const auto width = static_cast<std::size_t>(state ? table.state_width() : table.config().dim);
    require(values.size() == count * width, "table {}: expected {} values, found {}", table.config().name,
            count * width, values.size());
    // Rank by rank, each by ascending id: the k-th row of a rank is that of the k-th id that it owns.
    std::vector<std::size_t> next(static_cast<std::size_t>(tables_.owners().ranks), 0);
    for (std::size_t i = 0; i < count; ++i) ++next[owner(first + i)];
    std::size_t begin = 0;
    for (std::size_t& of_rank : next) begin += std::exchange(of_rank, begin);
    for (std::size_t i = 0; i < count; ++i)
      std::copy_n(values.data() + next[owner(first + i)]++ * width, width, out + i * width);
  }

 private:
  void ask(const Question& question) const { asked(question, tables_.comm()); }
  std::size_t owner(std::size_t i) const { return static_cast<std::size_t>(tables_.owners().owner(ids_[i])); }

  const TableSet& tables_;
  std::size_t t_;
  PartOfTable mine_;
  std::vector<std::int64_t> ids_;  // of all ranks, ascending
};

}  // namespace

std::unique_ptr<SavedRows> saved_rows(const TableSet& tables, std::size_t t) {
  if (tables.is_split()) return std::make_unique<SplitTable>(tables, t);
  return std::make_unique<WholeTable>(tables[t]);
}

void serve_rows(const TableSet& tables) {
  if (!tables.is_split()) return;
  std::unique_ptr<PartOfTable> part;
  Communicator& comm = tables.comm();
  for (Question q = asked({}, comm); q.kind != Question::done; q = asked({}, comm)) {
    if (q.kind != Question::ids) {
      part->send_rows(q, comm);
      continue;
    }
    part = std::make_unique<PartOfTable>(tables[static_cast<std::size_t>(q.table)]);
    part->send_ids(comm);
  }
}

ServedRows::~ServedRows() {
  if (!tables_.is_split()) return;
  try {
    asked({}, tables_.comm());
  } catch (const Error&) {  // a rank has ended: the next collective reports it
  }
}

}  // namespace hstu
