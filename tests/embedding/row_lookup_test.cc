// Lookups of rows that ranks share in every form, beside tables of one rank, which have every row.
#include "hstu/embedding/row_lookup.h"

#include <memory>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/base/float16.h"
#include "hstu/comm/thread_group.h"
#include "hstu/embedding/device_lookup.h"
#include "hstu/embedding/shared_rows.h"

namespace hstu {
namespace {

using namespace testing_embedding;

// One rank's side of it. The updates are exact, so that GPUs have the bits of the host.
class LookupWalk {
 public:
  static constexpr int kRanks = 3;

  // `gpus`, not null: the tables are in the memory of GPUs, and rows travel as `wire`.
  LookupWalk(Communicator& comm, const Context& where, DeviceTransport* gpus = nullptr,
             DType wire = DType::f32, std::int64_t cache_rows = 0)
      : rank_(comm.rank()),
        wire_(wire),
        whole_(configs(0), kSgd, 1),
        tables_(configs(cache_rows), kSgd, 1, where, owners(comm.rank())),
        alive_(tables_.size()) {
    tables_.share_over(comm, gpus, {wire, DType::f32});
  }

  void step(std::int64_t number) {
    step_ = number;
    std::vector<std::vector<Ids>> asked;  // by rank and table
    asked.reserve(kRanks);
    for (int r = 0; r < kRanks; ++r) asked.push_back(draw(60));
    const std::unique_ptr<RowLookup> lookup = begin(asked[static_cast<std::size_t>(rank_)]);
    if (random_.below(2) == 0) lookup->prefetch();
    const bool ahead = random_.below(3) != 0;
    if (ahead) lookup->read_ahead();
    if (random_.below(4) != 0) update(draw(100));
    if (ahead && random_.below(2) == 0) lookup->find_changed();
    const RowAccess access = random_.below(2) == 0 ? RowAccess::train : RowAccess::read;
    const FetchedRows fetched = lookup->finish(access);
    expect_rows(fetched.rows, asked[static_cast<std::size_t>(rank_)]);
    if (fetched.sent != nullptr) expect_sent(*fetched.sent, asked);
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      for (int r = 0; r < kRanks && access == RowAccess::train; ++r)
        add_alive(t, asked_here(t, r, asked[static_cast<std::size_t>(r)][t]));
      EXPECT_EQ(tables_[t].rows_alive(), std::ssize(alive_[t])) << tables_[t].config().name;
    }
    for (TableSet* const tables : {&whole_, &tables_}) tables->end_step();
  }

 private:
  static constexpr RowOptimizer kSgd{.kind = RowOptimizerKind::sgd};
  static constexpr std::int64_t kIds = 900;
  static constexpr TableRanks kForms[] = {TableRanks::split, TableRanks::column, TableRanks::table,
                                          TableRanks::copy};

  // A table of each form.
  static std::vector<TableConfig> configs(std::int64_t cache_rows) {
    std::vector<TableConfig> all;
    for (const TableRanks form : kForms) {
      all.push_back({.name = std::string(word_of(kTableRanks, form)),
                     .rows = kIds,
                     .dim = 5 + std::ssize(all),
                     .cache_rows = form == TableRanks::copy ? 0 : cache_rows});
    }
    return all;
  }
  static std::vector<RowOwners> owners(int rank) {
    std::vector<RowOwners> all;
    for (const TableRanks form : kForms)
      all.push_back({.rank = rank, .ranks = kRanks, .form = form, .home = 1});
    return all;
  }

  // Of each table at most n ids, often none, some of them outside. The same on all ranks.
  std::vector<Ids> draw(std::uint64_t n) {
    std::vector<Ids> ids;
    for (std::size_t t = 0; t < tables_.size(); ++t)
      ids.push_back(some_ids(random_, random_.below(2) == 0 ? kIds : kIds / 10,
                             random_.below(5) == 0 ? 0 : static_cast<std::size_t>(random_.below(n + 1))));
    return ids;
  }

  std::unique_ptr<RowLookup> begin(const std::vector<Ids>& ids) {
    std::vector<Tensor> tensors;
    tensors.reserve(ids.size());
    for (const Ids& of_table : ids) tensors.push_back(tensor(of_table));
    if (tables_.gpus() == nullptr) return std::make_unique<HostLookup>(tables_, tensors);
    std::vector<Route> routes;
    counts_.assign(ids.size(), {});
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const RowOwners& owners = tables_[t].owners();
      Ids sent;
      std::vector<std::int32_t> places;
      for (int r = 0; r < kRanks; ++r) {
        for (std::size_t i = 0; i < ids[t].size(); ++i) {
          if ((owners.by_row() ? owners.owner(ids[t][i]) : rank_) != r) continue;
          sent.push_back(ids[t][i]);
          places.push_back(static_cast<std::int32_t>(i));
        }
        counts_[t].push_back(std::ssize(sent) -
                             std::accumulate(counts_[t].begin(), counts_[t].end(), std::int64_t{0}));
      }
      if (owners.by_column()) counts_[t].assign(kRanks, std::ssize(sent));
      routes.push_back({tensor(sent).copy(tables_.context()),
                        Tensor::from<std::int32_t>({std::ssize(places)}, places).copy(tables_.context()),
                        tensor(sent), counts_[t]});
    }
    return std::make_unique<DeviceLookup>(tables_, std::move(routes));
  }

  // What rank r reads here of the ids that it asks for.
  Ids asked_here(std::size_t t, int r, const Ids& ids) const {
    const RowOwners& owners = tables_[t].owners();
    Ids here;
    for (const std::int64_t id : ids)
      if (owners.owns(id) && (owners.is_distributed() || r == rank_)) here.push_back(id);
    return here;
  }
  void add_alive(std::size_t t, const Ids& ids) {
    for (const std::int64_t id : ids)
      if (id >= 0 && id < kIds) alive_[t].insert(id);
  }

  // As the ranks do at the end of a step.
  void update(const std::vector<Ids>& ids) {
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const RowOwners& owners = tables_[t].owners();
      const std::int64_t dim = whole_[t].config().dim, first = owners.first_column(rank_, dim);
      Ids mine;
      std::vector<float> all, of_mine;
      for (const std::int64_t id : ids[t]) {
        for (std::int64_t c = 0; c < dim; ++c) all.push_back(static_cast<float>(1 + (id + 2 * c) % 3));
        if (!owners.owns(id)) continue;
        mine.push_back(id);
        of_mine.insert(of_mine.end(), all.end() - dim + first, all.end() - dim + first + tables_[t].width());
      }
      apply_gradients(whole_[t], ids[t], all.data(), 0x1p-12, step_);
      apply_gradients(tables_[t], mine, of_mine.data(), 0x1p-12, step_);
      add_alive(t, mine);
    }
  }

  float after_travel(float x) const {
    if (wire_ == DType::bf16) return static_cast<float>(BFloat16(x));
    return wire_ == DType::f16 ? static_cast<float>(Float16(x)) : x;
  }
  void expect_rows(const std::vector<Tensor>& rows, const std::vector<Ids>& ids) {
    for (std::size_t t = 0; t < ids.size(); ++t) {
      std::vector<float> expected = eval_lookup(whole_[t], ids[t]);
      if (tables_[t].owners().is_distributed())
        for (float& x : expected) x = after_travel(x);
      const Tensor found = rows[t].to_host(tables_.stream());
      ASSERT_EQ(found.shape(), Shape({std::ssize(ids[t]), whole_[t].config().dim}));
      EXPECT_EQ(std::vector(found.data<float>(), found.data<float>() + found.size()), expected)
          << "table " << tables_[t].config().name << ", rank " << rank_;
    }
  }
  // Gradients take the way back.
  void expect_sent(const SentRows& sent, const std::vector<std::vector<Ids>>& asked) const {
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      Ids ids, served;
      for (int r = 0; r < kRanks; ++r) {
        const Ids here = asked_here(t, r, asked[static_cast<std::size_t>(r)][t]);
        ids.insert(ids.end(), here.begin(), here.end());
        served.push_back(std::ssize(here));
      }
      const SentRows::OfTable& of = sent.tables[t];
      const Tensor found = of.served_ids.to_host(tables_.stream());
      EXPECT_EQ(Ids(found.data<std::int64_t>(), found.data<std::int64_t>() + found.size()), ids);
      EXPECT_EQ(of.served, served);
      EXPECT_EQ(of.asked, counts_[t]);
      EXPECT_EQ(of.handles.size(), std::ssize(ids));
    }
  }

  int rank_;
  DType wire_;
  RandomStream random_{.key = 11};
  std::int64_t step_ = 0;
  TableSet whole_, tables_;
  std::vector<std::set<std::int64_t>> alive_;  // by table: rows that are here
  std::vector<Ids> counts_;                    // of the routes of the lookup
};

TEST(HostLookup, BringsTheRowsOfOneRankAndCreatesThoseThatAreTrained) {
  run_ranks(LookupWalk::kRanks, [](Communicator& comm) {
    LookupWalk walk(comm, host_context());
    for (int step = 0; step < 200; ++step) walk.step(step);
  });
}

// Rows leave a cache of 300 rows, which has room for those of a step.
TEST(DeviceLookup, BringsTheRowsOfOneRankAndCreatesThoseThatAreTrained) {
  const int gpus = cuda_device_count();
  if (gpus == 0) GTEST_SKIP() << "no GPU";
  for (const DType wire : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t cache_rows : {0, 300}) {
      SCOPED_TRACE(to_string(wire) + (cache_rows == 0 ? "" : ", behind caches"));
      run_ranks(LookupWalk::kRanks, [&](Communicator& comm) {
        const Device device = Device::cuda(comm.rank() % gpus);
        make_current(device);
        const auto transport = staged_transport(comm);
        LookupWalk walk(comm, make_context(device), transport.get(), wire, cache_rows);
        for (int step = 0; step < 60; ++step) walk.step(step);
      });
    }
  }
}

}  // namespace
}  // namespace hstu
