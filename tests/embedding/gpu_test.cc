// Tables in a GPU's memory against those of the host: the same operations, the same contents.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/base/error.h"
#include "hstu/embedding/row_gradients.h"
#include "hstu/embedding/row_visits.h"
#include "hstu/embedding/table_set.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using namespace testing_embedding;

class TablesOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    gpu_ = make_context(Device::cuda(0));
  }
  Context gpu_;
};

void expect_equal_rows(const EmbeddingTable& host, const EmbeddingTable& gpu, float tolerance) {
  const auto expected = rows_by_id(host), found = rows_by_id(gpu);
  ASSERT_EQ(found.size(), expected.size());
  const auto near = [&](const std::vector<float>& a, const std::vector<float>& b, std::int64_t id) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(a[i]))) << "id " << id << ", value " << i;
  };
  for (std::size_t r = 0; r < found.size(); ++r) {
    ASSERT_EQ(found[r].id, expected[r].id);
    near(expected[r].values, found[r].values, found[r].id);
    near(expected[r].state, found[r].state, found[r].id);
  }
}

TEST_F(TablesOnGpu, HaveTheHostsRowsAfterAnyOperations) {
  for (const auto& [word, kind] : kRowOptimizers) {
    for (const std::int64_t dim : {1, 6, 64, 300}) {
      const TableConfig config{"item", 60'000, dim};
      EmbeddingTable host(config, {.kind = kind}, 5), gpu(config, {.kind = kind}, 5, gpu_);
      RandomStream random{.key = 7};
      for (int step = 0; step < 12; ++step) {
        const Ids ids = some_ids(random, config.rows, static_cast<std::size_t>(random.below(9000)));
        EXPECT_EQ(eval_lookup(host, ids).size(), eval_lookup(gpu, ids).size());
        const auto before = train_lookup(host, ids), found = train_lookup(gpu, ids);
        for (std::size_t i = 0; i < before.size(); ++i)
          ASSERT_NEAR(found[i], before[i], 2e-5f * (1 + std::abs(before[i]))) << step;
        const auto gradients = random_values(ids.size() * static_cast<std::size_t>(dim), random.bits());
        apply_gradients(host, ids, gradients.data(), 0.05);
        apply_gradients(gpu, ids, gradients.data(), 0.05);
        ASSERT_EQ(gpu.rows_alive(), host.rows_alive());
      }
      expect_equal_rows(host, gpu, 2e-5f);
    }
  }
}

TEST_F(TablesOnGpu, BeginWithTheHostsInitialValuesToTheBit) {
  EmbeddingTable host({"item", 5000, 9}, {}, 1), gpu({"item", 5000, 9}, {}, 1, gpu_);
  const Ids ids = range(-3, 5003);
  EXPECT_EQ(eval_lookup(gpu, ids), eval_lookup(host, ids)) << "absent rows, and null rows";
  EXPECT_EQ(gpu.rows_alive(), 0) << "evaluation makes no rows";
  EXPECT_EQ(train_lookup(gpu, ids), train_lookup(host, ids));
  EXPECT_EQ(gpu.rows_alive(), 5000);
  EXPECT_TRUE(gpu.contains(0) && gpu.contains(4999) && !gpu.contains(5000));
  expect_equal_rows(host, gpu, 0);
}

// Columns begin at any word of a draw of initial values, and at any half of one of rounding. The updates are
// exact but for rounding.
TEST_F(TablesOnGpu, HaveTheBitsOfTheHostsWholeRowsInSomeOfTheirColumns) {
  constexpr int kRanks = 5;
  const RowOptimizer sgd{.kind = RowOptimizerKind::sgd};
  const Ids ids = range(0, 300);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const TableConfig config{.name = "item", .rows = 5000, .dim = 29, .dtype = dtype};
    EmbeddingTable host(config, sgd, 1);
    std::vector<std::unique_ptr<EmbeddingTable>> parts;
    for (int rank = 0; rank < kRanks; ++rank) {
      const RowOwners owners{.rank = rank, .ranks = kRanks, .form = TableRanks::column};
      parts.push_back(std::make_unique<EmbeddingTable>(config, sgd, 1, gpu_, owners));
    }
    const auto expect_the_same_rows = [&](RowAccess access) {
      const auto whole = [&](EmbeddingTable& table) { return rows_of(table, table.select(ids, access)); };
      const std::vector<float> expected = whole(host);
      for (const auto& part : parts) {
        const std::vector<float> found = whole(*part);
        const std::int64_t first = part->owners().first_column(part->owners().rank, config.dim);
        for (std::int64_t i = 0; i < std::ssize(found); ++i) {
          const std::int64_t row = i / part->width(), column = first + i % part->width();
          ASSERT_EQ(found[static_cast<std::size_t>(i)],
                    expected[static_cast<std::size_t>(row * config.dim + column)])
              << to_string(dtype) << ", row " << row << ", column " << column;
        }
      }
    };
    expect_the_same_rows(RowAccess::read);
    const std::vector<float> ones(ids.size() * static_cast<std::size_t>(config.dim), 1.0f);
    for (std::int64_t step = 0; step < 4; ++step) {
      expect_the_same_rows(RowAccess::train);
      apply_gradients(host, ids, ones.data(), 0x1p-12, step);
      for (const auto& part : parts) apply_gradients(*part, ids, ones.data(), 0x1p-12, step);
    }
    expect_the_same_rows(RowAccess::read);
  }
}

TEST_F(TablesOnGpu, KeepTheirRowsWhileTheyGrow) {
  const TableConfig config{"item", 3'000'000, 128};  // a chunk holds 8,192 of these rows
  EmbeddingTable gpu(config, {.kind = RowOptimizerKind::adam}, 1, gpu_);
  const Ids early{0, 2'999'999, 777};
  const auto gradients = random_values(3 * 128, 2);
  apply_gradients(gpu, early, gradients.data(), 0.1);
  const auto before = eval_lookup(gpu, early);
  for (std::int64_t first = 1000; first < 200'000; first += 20'000)
    train_lookup(gpu, range(first, first + 20'000));
  EXPECT_EQ(gpu.rows_alive(), 200'003);
  EXPECT_EQ(eval_lookup(gpu, early), before);
  EXPECT_LT(gpu.bytes(), std::int64_t{400'000} * (32 + 4 * (3 * 128 + 4) + 64));
}

TEST_F(TablesOnGpu, AreRestoredFromTheHostsRows) {
  const RowOptimizer adam{.kind = RowOptimizerKind::adam};
  EmbeddingTable host({"item", 200'000, 5}, adam, 1), gpu({"item", 200'000, 5}, adam, 1, gpu_);
  const Ids ids = range(10, 150'000);  // more than a block of rows
  const auto gradients = random_values(ids.size() * 5, 3);
  apply_gradients(host, ids, gradients.data(), 0.1);
  std::vector<float> values(ids.size() * 5), state(ids.size() * 11);
  host.read(host.places_by_id(), values.data(), state.data());
  gpu.restore(ids, values.data(), state.data());
  std::vector<float> values_there(values.size()), state_there(state.size());
  gpu.read(gpu.places_by_id(), values_there.data(), state_there.data());
  EXPECT_EQ(values_there, values);
  EXPECT_EQ(state_there, state);
}

TEST_F(TablesOnGpu, RefuseARowThatIsTwiceInOneUpdate) {
  EmbeddingTable gpu({"item", 100, 2}, {}, 1, gpu_);
  train_lookup(gpu, {4, 5});
  const std::vector<float> gradients(6, 1.0f);
  update_rows(gpu, gpu.select(Ids{4, 5, 4}, RowAccess::read), gradients.data(), 0.1);
  gpu_.stream.synchronize();
  EXPECT_THROW(apply_gradients(gpu, Ids{4, 5}, gradients.data(), 0.1), InternalError) << "by the next update";
}

// Gradients of three tables and three parts of a batch that share rows.
TEST_F(TablesOnGpu, MergeThePartsOfABatchAsTheHostDoes) {
  const std::vector<TableConfig> configs{{"a", 1000, 12}, {"b", 50, 12}, {"c", 10'000, 12}};
  TableSet host(configs, {}, 1), gpu(configs, {}, 1, gpu_);
  RandomStream random{.key = 3};
  for (int step = 0; step < 4; ++step) {
    RowGradients of_host(host), of_gpu(gpu);
    for (int part = 0; part < 3; ++part) {
      std::vector<Tensor> ids, gradients, ids_there, gradients_there;
      for (std::size_t t = 0; t < configs.size(); ++t) {
        const Ids some = some_ids(random, configs[t].rows, t == 1 ? 60 : 700);
        ids.push_back(tensor(some));
        ids_there.push_back(ids.back().copy(gpu_));
        const bool has_gradient = part != 1 || t != 2;
        gradients.push_back(has_gradient ? Tensor::from<float>({ids.back().size(), 12},
                                                               random_values(some.size() * 12, random.bits()))
                                         : Tensor());
        gradients_there.push_back(has_gradient ? gradients.back().copy(gpu_) : Tensor());
      }
      of_host.add(host.select(ids, RowAccess::train), gradients);
      of_gpu.add(gpu.select(ids_there, RowAccess::train), gradients_there);
    }
    for (RowGradients* gradients : {&of_host, &of_gpu}) {
      gradients->merge(one_rank());
      EXPECT_FALSE(gradients->first_bad());
      gradients->apply({.learning_rate = 0.1});
    }
  }
  for (std::size_t t = 0; t < configs.size(); ++t) expect_equal_rows(host[t], gpu[t], 1e-5f);
}

// Two tables of which the second has a limit and an optimizer of its own: on the host, on the GPU, behind
// caches that are far too small for the table or grow to the rows of a step, and on disks, with parts of a
// batch that share rows, prefetches, and evaluation of more rows than a cache holds.
void expect_the_hosts_rows(DType dtype, const Context& gpu_context, float tolerance) {
  const RowOptimizer adam{.kind = RowOptimizerKind::adam};
  std::vector<TableConfig> configs{{.name = "a", .rows = 20'000, .dim = 170, .dtype = dtype},
                                   {.name = "b", .rows = 20'000, .dim = 20, .dtype = dtype}};
  configs[1].limits = {.capacity = 700, .evict = Evict::lfu};
  configs[1].optimizer = RowOptimizerKind::adagrad;
  TableSet host(configs, adam, 1), gpu(configs, adam, 1, gpu_context);
  for (TableConfig& config : configs) config.place = TableTier::host;
  TableSet below(configs, adam, 1, gpu_context);
  for (TableConfig& config : configs) config.cache_rows = 900;
  TableSet cached(configs, adam, 1, gpu_context);
  std::vector<TableSet*> all{&host, &gpu, &cached, &below};
  std::vector<std::unique_ptr<TableSet>> on_disks;
  if (std::filesystem::exists(HSTU_PROGRAM_DIR "/libhstu_rocksdb.so")) {
    for (TableConfig& config : configs) {
      config.place = TableTier::disk;
      config.disk_folder = temporary_folder();
      config.host_rows = 1100;
    }
    on_disks.push_back(std::make_unique<TableSet>(configs, adam, 1, gpu_context));
    for (TableConfig& config : configs) config.cache_rows = 0;
    on_disks.push_back(std::make_unique<TableSet>(configs, adam, 1, gpu_context));
    for (const auto& tables : on_disks) all.push_back(tables.get());
  }
  RandomStream random{.key = 9};
  const auto draw = [&](std::size_t n) {
    std::vector<Tensor> ids;
    ids.reserve(configs.size());
    for (const TableConfig& config : configs)
      ids.push_back(tensor(some_ids(random, random.below(2) == 0 ? config.rows : config.rows / 20, n)));
    return ids;
  };
  const auto select = [&](TableSet& tables, const std::vector<Tensor>& ids, RowAccess access) {
    std::vector<Tensor> there;
    there.reserve(ids.size());
    for (const Tensor& of_table : ids)
      there.push_back(tables.device().is_host() ? of_table : of_table.copy(gpu_context));
    return tables.select(there, access, ids);
  };
  std::vector<Tensor> next = draw(300);
  for (int step = 0; step < 60; ++step) {
    const std::vector<std::vector<Tensor>> parts{next, draw(200), draw(300)};
    std::vector<std::vector<Tensor>> gradients;
    for (const auto& ids : parts) {
      gradients.emplace_back();
      for (std::size_t t = 0; t < configs.size(); ++t) {
        const std::int64_t rows = ids[t].size(), dim = configs[t].dim;
        gradients.back().push_back(Tensor::from<float>(
            {rows, dim}, random_values(static_cast<std::size_t>(rows * dim), random.bits())));
      }
    }
    next = draw(300);
    const std::vector<Tensor> evaluated = draw(3000);
    std::vector<std::vector<float>> seen;
    for (TableSet* const tables : all) {
      RowGradients sums(*tables);
      RowVisits visits(*tables);
      seen.emplace_back();
      const auto look = [&](const RowSelection& selection) {
        for (const Tensor& rows : tables->gather(selection)) {
          const Tensor here = rows.to_host(tables->stream());
          seen.back().insert(seen.back().end(), here.data<float>(), here.data<float>() + here.size());
        }
      };
      for (std::size_t p = 0; p < parts.size(); ++p) {
        RowSelection selection = select(*tables, parts[p], RowAccess::train);
        look(selection);
        for (std::size_t t = 0; t < configs.size(); ++t) {
          const Tensor& ids = parts[p][t];
          const std::vector<std::int64_t> once(static_cast<std::size_t>(ids.size()), 1);
          visits.add(t, std::span(ids.data<std::int64_t>(), once.size()), once);
        }
        std::vector<Tensor> there;
        for (const Tensor& of_table : gradients[p]) there.push_back(of_table.copy(tables->context()));
        sums.add(std::move(selection), std::move(there));
      }
      if (step % 3 != 0) tables->prefetch(next);
      sums.merge(one_rank());
      sums.apply({.learning_rate = 0.1, .step = step});
      visits.end_step(one_rank(), step);
      tables->end_step();
      if (step % 7 == 0) look(select(*tables, evaluated, RowAccess::read));
    }
    for (std::size_t t = 2; t < seen.size(); ++t) ASSERT_EQ(seen[t], seen[1]) << t << ", step " << step;
    ASSERT_EQ(seen[1].size(), seen[0].size());
    for (std::size_t i = 0; i < seen[0].size(); ++i)
      ASSERT_NEAR(seen[1][i], seen[0][i], tolerance * (1 + std::abs(seen[0][i]))) << "step " << step;
  }
  for (std::size_t t = 0; t < configs.size(); ++t) {
    expect_equal_rows(host[t], gpu[t], tolerance);
    for (const TableSet* const tables : std::span(all).subspan(2)) expect_equal_rows(gpu[t], (*tables)[t], 0);
  }
  EXPECT_GT(host[1].counts().evicted, 1000);
  EXPECT_GT(cached[0].cache_counts()->prefetched, 1000);
  EXPECT_GT(cached[0].cache_counts()->bytes_out, 1'000'000);
}

TEST_F(TablesOnGpu, KeepTheHostsRowsWithinLimitsAndTheSameBitsBehindCaches) {
  expect_the_hosts_rows(DType::f32, gpu_, 2e-4f);
}

// Where a GPU's number differs from the host's in the last bit, an update may round to the other neighbour.
TEST_F(TablesOnGpu, KeepTheHostsRowsInBf16) {
  expect_the_hosts_rows(DType::bf16, gpu_, 0x1p-5f);
}

TEST_F(TablesOnGpu, BeginWithAConstantAsTheHostDoes) {
  TableConfig config{"item", 5000, 9};
  config.initial = {.kind = InitialKind::constant, .value = 0.25};
  EmbeddingTable host(config, {}, 1), gpu(config, {}, 1, gpu_);
  EXPECT_EQ(train_lookup(gpu, range(0, 10)), train_lookup(host, range(0, 10)));
  EXPECT_EQ(eval_lookup(gpu, range(5, 30)), eval_lookup(host, range(5, 30)));
}

// The logarithm and the cosine of the GPU may round differently.
TEST_F(TablesOnGpu, BeginWithNormalValuesUpToTheLastBit) {
  for (const InitialKind kind : {InitialKind::normal, InitialKind::truncated_normal}) {
    TableConfig config{"item", 5000, 9};
    config.initial = {.kind = kind, .mean = 0.5, .deviation = 0.2};
    const RowOwners owners{.rank = 1, .ranks = 2, .form = TableRanks::column};
    EmbeddingTable host(config, {}, 1, host_context(), owners), gpu(config, {}, 1, gpu_, owners);
    const auto expected = train_lookup(host, range(0, 3000)), found = train_lookup(gpu, range(0, 3000));
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_FLOAT_EQ(found[i], expected[i]) << i;
  }
}

TEST_F(TablesOnGpu, NameTheRowsThatChanged) {
  TableConfig plain{"item", 5000, 4}, limited = plain, cached = plain;
  limited.limits = {.capacity = 4000, .evict = Evict::lru};
  cached.cache_rows = 600;
  for (const TableConfig& config : {plain, limited, cached}) {
    TableSet tables({config}, {}, 1, gpu_);
    const auto gradients = random_values(500 * 4, 1);
    const auto changed = [&] {
      Ids ids;
      for (const RowPlace& place : tables[0].changed_by_id()) ids.push_back(place.id);
      return ids;
    };
    apply_gradients(tables[0], range(0, 500), gradients.data(), 0.1);
    tables.end_step();
    EXPECT_EQ(changed(), range(0, 500));
    tables.begin_changes();
    EXPECT_EQ(changed(), Ids());
    apply_gradients(tables[0], range(400, 520), gradients.data(), 0.1);
    tables.end_step();
    EXPECT_EQ(changed(), range(400, 520));
    eval_lookup(tables[0], range(0, 1000));
    EXPECT_EQ(changed(), range(400, 520));
  }
}

TEST_F(TablesOnGpu, NameTheFirstGradientThatIsNotFinite) {
  TableSet gpu({{"a", 100, 2}, {"b", 50, 2}}, {}, 1, gpu_);
  RowGradients gradients(gpu);
  const std::vector<Tensor> ids{tensor({1, 2}).copy(gpu_), tensor({4, 5, 6}).copy(gpu_)};
  const Tensor good = Tensor::from<float>({2, 2}, {0, 1, 2, 3});
  const Tensor bad = Tensor::from<float>({3, 2}, {0, 0, 0, INFINITY, NAN, 0});
  gradients.add(gpu.select(ids, RowAccess::train), {good.copy(gpu_), bad.copy(gpu_)});
  const auto found = gradients.first_bad();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->table, 1u);
  EXPECT_EQ(found->id, 5);
}

}  // namespace
}  // namespace hstu
