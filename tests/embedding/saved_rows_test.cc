// The rows of a checkpoint, whatever number of ranks has them, beside one table that has all of them.
#include "hstu/embedding/saved_rows.h"

#include <memory>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/comm/thread_group.h"
#include "hstu/embedding/row_visits.h"

namespace hstu {
namespace {

using namespace testing_embedding;

constexpr double kRate = 0.1;
constexpr std::int64_t kDims[] = {5, 3};

// A table with limits, where ids wait, and one without.
std::vector<TableConfig> configs() {
  return {{.name = "item", .rows = 90, .dim = kDims[0], .limits = {.evict = Evict::lfu, .admit_after = 2}},
          {.name = "user", .rows = 90, .dim = kDims[1]}};
}
const RowOptimizer kAdam{.kind = RowOptimizerKind::adam};

// A step that reads and updates the rows of every id of `ids` in both tables. Every rank makes the whole
// step.
void step(TableSet& tables, const Ids& ids, std::uint64_t key, Communicator& comm) {
  RowVisits visits(tables);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    EmbeddingTable& table = tables[t];
    const RowOwners& owners = table.owners();
    Ids mine;
    for (const std::int64_t id : ids)
      if (owners.owns(id)) mine.push_back(id);
    const std::int64_t first = owners.first_column(owners.rank, kDims[t]);
    std::vector<float> gradients;
    for (const std::int64_t id : mine) {
      const auto row =
          random_values(static_cast<std::size_t>(kDims[t]), key + static_cast<std::uint64_t>(id));
      gradients.insert(gradients.end(), row.begin() + first, row.begin() + first + table.width());
    }
    apply_gradients(table, mine, gradients.data(), kRate);
    // Rank 0 has read them all, and of some more than once.
    if (comm.rank() > 0) continue;
    Ids occurrences;
    for (const std::int64_t id : ids) occurrences.push_back(1 + id % 3);
    visits.add(t, ids, occurrences);
  }
  visits.end_step(comm, 5);
}

struct Expected {
  Ids ids, all_ids;
  std::vector<float> values, state;
  Ids history;
};
Expected expected_of(const EmbeddingTable& table, RowsToSave which) {
  Expected expected;
  for (const auto& place : table.places_by_id()) expected.all_ids.push_back(place.id);
  const auto places = which == RowsToSave::all ? table.places_by_id() : table.changed_by_id();
  for (const auto& place : places) expected.ids.push_back(place.id);
  expected.values.resize(places.size() * static_cast<std::size_t>(table.config().dim));
  expected.state.resize(places.size() * static_cast<std::size_t>(table.state_width()));
  table.read(places, expected.values.data(), expected.state.data());
  if (!table.has_limits()) return expected;
  Ids seen(places.size()), scores(places.size());
  table.read_history(places, seen.data(), scores.data());
  for (std::size_t i = 0; i < places.size(); ++i)
    expected.history.insert(expected.history.end(), {seen[i], scores[i]});
  return expected;
}

// In blocks, as checkpoints read.
void expect_rows(SavedRows& saved, const EmbeddingTable& whole, RowsToSave which) {
  const Expected expected = expected_of(whole, which);
  ASSERT_EQ(Ids(saved.ids().begin(), saved.ids().end()), expected.ids);
  EXPECT_EQ(saved.all_ids(), expected.all_ids);
  const std::size_t n = expected.ids.size();
  const auto dim = static_cast<std::size_t>(whole.config().dim),
             width = static_cast<std::size_t>(whole.state_width());
  std::vector<float> values(n * dim, -7), state(n * width, -7);
  Ids history(expected.history.size());
  for (const std::size_t block : {std::size_t{7}, n, std::size_t{1}}) {
    for (std::size_t first = 0; first < n; first += block) {
      const std::size_t count = std::min(block, n - first);
      saved.read(first, count, false, values.data() + first * dim);
      saved.read(first, count, true, state.data() + first * width);
      if (!history.empty()) saved.read_history(first, count, history.data() + first * 2);
    }
    EXPECT_EQ(values, expected.values);
    EXPECT_EQ(state, expected.state);
    EXPECT_EQ(history, expected.history);
    std::fill(values.begin(), values.end(), -7.0f);
  }
  saved.read(0, 0, false, values.data());
  if (!whole.has_limits()) return;
  const WaitingIds::List waiting = saved.waiting(), waits = whole.waiting().by_id();
  EXPECT_EQ(waiting.ids, waits.ids);
  EXPECT_EQ(waiting.counts, waits.counts);
  const RowCounts counts = saved.counts(), wanted = whole.counts();
  EXPECT_EQ(counts.inserted, wanted.inserted);
  EXPECT_EQ(counts.admitted, wanted.admitted);
  EXPECT_EQ(counts.hits, wanted.hits);
  EXPECT_EQ(counts.misses, wanted.misses);
}

class SavedRowsOver : public testing::TestWithParam<TableRanks> {
 protected:
  // Calls body(tables, comm) on each rank; table 1 has another form than table 0 if there are several ranks.
  template <typename Body>
  void on_ranks(int ranks, const Body& body) const {
    run_ranks(ranks, [&](Communicator& comm) {
      std::vector<RowOwners> owners;
      for (const bool first : {true, false}) {
        owners.push_back({.rank = comm.rank(),
                          .ranks = ranks,
                          .form = first ? GetParam() : TableRanks::split,
                          .home = ranks - 1});
      }
      TableSet tables(configs(), kAdam, 1, host_context(), owners);
      if (ranks > 1) tables.share_over(comm, nullptr);
      body(tables, comm);
    });
  }
};

TEST_P(SavedRowsOver, AreThoseOfOneTableAndOfItsChanges) {
  const Ids first = range(-2, 60), second{3, 59, 61, 62, 63, 80, 95};
  for (const int ranks : {1, 2, 3}) {
    SCOPED_TRACE(ranks);
    // The reference, as it was and after the changes.
    TableSet before(configs(), kAdam, 1), after(configs(), kAdam, 1);
    for (TableSet* const tables : {&before, &after}) {
      step(*tables, first, 100, one_rank());
      step(*tables, range(0, 30), 200, one_rank());
    }
    after.begin_changes();
    step(after, second, 300, one_rank());
    ASSERT_GT(before[0].rows_alive(), 40);
    ASSERT_LT(after[0].changed_by_id().size(), 10u);
    ASSERT_GT(before[0].waiting().size(), 5);

    on_ranks(ranks, [&](TableSet& tables, Communicator& comm) {
      step(tables, first, 100, comm);
      step(tables, range(0, 30), 200, comm);
      // On rank 0 while the others serve.
      const auto save = [&](TableSet& reference, RowsToSave which, bool begins_changes) {
        if (comm.rank() > 0) return serve_rows(tables);
        ServedRows served(tables);
        for (const std::size_t t : {0, 1, 0}) expect_rows(*saved_rows(tables, t, which), reference[t], which);
        if (begins_changes) served.begin_changes();
      };
      save(before, RowsToSave::all, true);
      step(tables, second, 300, comm);
      save(after, RowsToSave::changed, false);
      save(after, RowsToSave::all, false);
    });
  }
}

// Without this, the other ranks would wait for the next question for ever.
TEST_P(SavedRowsOver, ServeEndsWhenTheSaveFails) {
  std::atomic<int> ended = 0;
  on_ranks(3, [&](TableSet& tables, Communicator& comm) {
    step(tables, range(0, 30), 100, comm);
    if (comm.rank() > 0) {
      serve_rows(tables);
    } else {
      try {
        const ServedRows served(tables);
        saved_rows(tables, 0, RowsToSave::all);
        fail("the disk is full");
      } catch (const Error&) {
      }
    }
    comm.barrier();
    for (std::size_t t = 0; t < 2; ++t)  // every row counts as changed: nothing was saved
      EXPECT_EQ(tables[t].changed_by_id().size(), tables[t].places_by_id().size());
    ++ended;
  });
  EXPECT_EQ(ended, 3);
}

INSTANTIATE_TEST_SUITE_P(EveryForm, SavedRowsOver,
                         testing::Values(TableRanks::split, TableRanks::column, TableRanks::table,
                                         TableRanks::copy),
                         [](const auto& form) { return std::string(word_of(kTableRanks, form.param)); });

}  // namespace
}  // namespace hstu
