// Tables whose rows have another width than the model, which a learned matrix leads to.
#include <gmock/gmock.h>

#include "hstu/base/npy.h"
#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/embedding/saved_table.h"
#include "hstu/model/projected_tables.h"
#include "hstu/options/make_task.h"
#include "hstu/plan/memory_plan.h"
#include "hstu/run/table_files.h"
#include "hstu/run/warm_start.h"
#include "support/kind_options.h"
#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

class TableWidths : public RankedRun {
 protected:
  TableWidths() {
    options_.tables.by_name["item"].width = 3;
    options_.tables.by_name["user"].width = 20;
  }
  std::map<std::string, std::int64_t> dims(const std::string& name) const {
    std::map<std::string, std::int64_t> dims;
    const Json tables = log(name, "run").front().at("tables");
    for (const auto& [table, facts] : tables.items()) dims[table] = facts.at("dim");
    return dims;
  }
  double final_loss(const std::string& name) const {
    return log(name, "train").back().at("loss").get<double>();
  }
};

TEST_F(TableWidths, TrainTheSameModelOnAnyNumberOfRanksAndResume) {
  options_.sparse.kind = RowOptimizerKind::adagrad;  // rowwise needs whole rows
  options_.checkpoint = {.every_steps = 6, .every_seconds = 0, .keep = 0};
  run_on(1, "alone");
  EXPECT_EQ(dims("alone"), (std::map<std::string, std::int64_t>{{"item", 3}, {"user", 20}}));
  for (const auto& [ranks, form] : {std::pair(2, TableRanks::split),
                                    {3, TableRanks::column},
                                    {4, TableRanks::table},
                                    {2, TableRanks::copy}}) {
    options_.tables.ranks = form;
    const std::string name = fmt::format("{} {}", ranks, word_of(kTableRanks, form));
    run_on(ranks, name);
    EXPECT_NEAR(final_loss(name), final_loss("alone"), 1e-6) << name;
  }
  options_.tables.ranks = TableRanks::split;
  options_.training.max_steps = 6;
  run_on(1, "half");
  options_.training.max_steps = 12;
  run_on(1, "half", true);
  EXPECT_EQ(learner_tensors("half"), learner_tensors("alone"));
}

// The same bytes as without the key.
TEST_F(TableWidths, OfTheModelNeedNoProjection) {
  options_.tables.by_name["item"].width = options_.tables.by_name["user"].width = 8;
  ASSERT_EQ(dlrmv4_of(options_).embedding_dim, 8);
  run_on(1, "equal");
  options_.tables.by_name.clear();
  run_on(1, "none");
  expect_same_tensors("equal", "none");
}

TEST_F(TableWidths, ThatDifferAreNamedByAWarmStart) {
  options_.training.max_steps = 2;
  run_on(1, "narrow");
  options_.warm_start.checkpoint = find_checkpoint(folder_ / "narrow" / "checkpoints", -1);
  options_.tables.by_name["item"].width = 4;
  ::testing::internal::CaptureStderr();
  run_on(1, "wide");
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ::testing::AllOf(::testing::HasSubstr("table item"), ::testing::HasSubstr("width 3 there, 4 here")));
}

// Vectors of another model: rows of a folder that no run has written.
TEST_F(TableWidths, MayBeThoseOfImportedVectors) {
  const std::vector<float> vectors{1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> ids{3, 7}, shape{2, 3};
  write_file(folder_ / "v.npy", npy_header(npy_type<float>(), shape) +
                                    std::string(reinterpret_cast<const char*>(vectors.data()), 24));
  write_npy(folder_ / "i.npy", ids);
  import_npy({{.table = "item", .rows = folder_ / "v.npy", .ids = folder_ / "i.npy"}}, folder_ / "rows");
  options_.warm_start.checkpoint = folder_ / "rows";
  options_.tables.by_name["item"].frozen = true;
  options_.training.max_steps = 2;
  run_on(1, "run");
  const Checkpoint checkpoint(find_checkpoint(folder_ / "run" / "checkpoints", -1));
  const SavedTable rows(checkpoint.section("tables/item"));
  const auto at = std::ranges::find(rows.ids(), 7);
  ASSERT_NE(at, rows.ids().end());
  EXPECT_THAT(rows.row(static_cast<std::size_t>(at - rows.ids().begin())), ::testing::ElementsAre(4, 5, 6));
}

// Rows and gradients as the product of matrices has them.
TEST_F(TableWidths, AreLedToThatOfTheModelByAMatrix) {
  const Dataset dataset(options_.data.path);
  const auto plain_options = [&] {
    RunOptions plain = options_;
    plain.tables.by_name.clear();
    return plain;
  }();
  const Task task = make_task(options_, facts_of(dataset)),
             plain = make_task(plain_options, facts_of(dataset));
  Experiment experiment(plain_options);
  const auto loader = training_loader(experiment, {}, one_rank());
  const Batch& batch = loader->next()->batch;
  const std::vector<FeatureSpec> features = task.model->features();
  std::vector<Variable> rows, projected;
  for (std::size_t f = 0; f < features.size(); ++f) {
    const std::int64_t n = std::ssize(batch.values<std::int64_t>(ids_column(features[f].name)));
    const std::int64_t width = task.model->row_width(f), dim = task.model->embedding_dim();
    Tensor x = Tensor::empty({n, width}, DType::f32), y = Tensor::zeros({n, dim}, DType::f32);
    RandomStream random{f};
    for (std::int64_t i = 0; i < x.size(); ++i)
      x.mutable_data<float>()[i] = static_cast<float>(random.normal());
    const Tensor& p = task.model->parameters().find("tables." + features[f].name + ".projection").value;
    ASSERT_EQ(p.shape(), (Shape{width, dim}));
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t w = 0; w < width; ++w)
        for (std::int64_t e = 0; e < dim; ++e)
          y.mutable_data<float>()[i * dim + e] +=
              x.data<float>()[i * width + w] * p.data<float>()[w * dim + e];
    rows.emplace_back(x);
    projected.emplace_back(y);
  }
  const auto loss = [&](const Task& of, const std::vector<Variable>& leaves) {
    Tape tape;
    const Variable result =
        of.objective->loss({tape, batch, leaves}, of.model->forward(tape, batch, leaves, Draws()));
    tape.backward(result);
    return static_cast<double>(result.value().data<float>()[0]);
  };
  EXPECT_NEAR(loss(task, rows), loss(plain, projected), 1e-5);
  for (std::size_t f = 0; f < features.size(); ++f) {
    const Parameter& p = task.model->parameters().find("tables." + features[f].name + ".projection");
    const std::int64_t width = p.value.rows(), dim = p.value.cols(), n = rows[f].rows();
    for (std::int64_t w = 0; w < width; ++w) {
      for (std::int64_t e = 0; e < dim; ++e) {
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i)
          sum += static_cast<double>(rows[f].value().data<float>()[i * width + w]) *
                 static_cast<double>(projected[f].gradient().data<float>()[i * dim + e]);
        EXPECT_NEAR(p.gradient.data<float>()[w * dim + e], sum, 1e-5) << features[f].name;
      }
    }
  }
}

TEST_F(TableWidths, ArePlannedAndRefusedWhereRowsAreCompared) {
  const auto bytes = [&](const char* table) {
    const MemoryPlan plan = plan_memory(options_, TaskData(options_), DryDevice{}, 1);
    for (const MemoryPlan::Table& of : plan.tables)
      if (of.name == table) return of.step_bytes;
    return std::int64_t{0};
  };
  const std::int64_t narrow = bytes("item");
  options_.tables.by_name["item"].width = 300;
  EXPECT_GT(bytes("item"), 10 * narrow);
  options_.features.context.clear();
  options_.tables.by_name.erase("user");
  retrieval_of(options_).embedding_dim = 8;
  EXPECT_THAT(message_of<UsageError>([&] { TaskData refused(options_); }),
              ::testing::HasSubstr("tables.item.width = 300: this model compares its vectors with the rows"));
}

}  // namespace
}  // namespace hstu::testing
