#include "hstu/checkpoint/checkpoint.h"

#include <cmath>
#include <csignal>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "checkpoint/support.h"

namespace hstu {
namespace {

using namespace testing_checkpoint;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

TEST(Checkpoint, SaveLoadSaveGivesEqualBytes) {
  for (const auto& [name, kind] : kRowOptimizers) {
    const TemporaryFolder folder;
    Model model(1, kind);
    model.train(5);
    const Path first = model.save(folder / "a");
    EXPECT_EQ(first.filename(), "step_00000005");
    Model again(1, kind);
    again.load(first);
    EXPECT_EQ(content_of(first), content_of(again.save(folder / "b")));
    EXPECT_EQ(content_of(first).size(), 5u);
  }
}

TEST(Checkpoint, TrainingGoesOnAsIfNeverStopped) {
  const TemporaryFolder folder;
  Model straight, stopped, resumed;
  straight.train(8);
  stopped.train(5);
  resumed.load(stopped.save(folder));
  resumed.train(3);
  EXPECT_EQ(content_of(straight.save(folder / "a")), content_of(resumed.save(folder / "b")));
}

TEST(Checkpoint, BytesDoNotDependOnTheOrderOfFirstTouches) {
  const TemporaryFolder folder;
  Model forwards, backwards;
  const std::vector<std::int64_t> ids{1, 2, 900}, reversed{900, 2, 1};
  forwards.tables[0].select(ids, RowAccess::train);
  backwards.tables[0].select(reversed, RowAccess::train);
  EXPECT_EQ(content_of(forwards.save(folder / "a")), content_of(backwards.save(folder / "b")));
}

TEST(Checkpoint, GivesTheCallersStateBackUnchanged) {
  const TemporaryFolder folder;
  const nlohmann::json state = {
      {"samples", (1LL << 60) + 1}, {"loss", 0.1 + 0.2}, {"cursor", {1, 2}}, {"name", "é"}};
  const Path path = save_checkpoint(folder, 7, {}, state);
  const Checkpoint checkpoint(path.string() + "/");
  EXPECT_EQ(checkpoint.state(), state);
  EXPECT_EQ(checkpoint.step(), 7);
  EXPECT_THROW(save_checkpoint(folder, 8, {}, {{"loss", std::nan("")}}), InternalError)
      << "JSON would turn it into null";
  EXPECT_FALSE(fs::exists(folder / "step_00000008"));
}

TEST(Checkpoint, OneFlippedByteInAnyFileIsRefusedByName) {
  const TemporaryFolder folder;
  Model model;
  model.train(2);
  const Path path = model.save(folder);
  for (const auto& [name, bytes] : content_of(path)) {
    for (std::size_t at = 0; at < bytes.size(); at += 13) {
      std::string altered = bytes;
      altered[at] = static_cast<char>(altered[at] ^ 1);
      scribble(path / name, altered);
      ASSERT_THAT(error_of([&] { Checkpoint{path}; }), HasSubstr(name)) << "byte " << at;
    }
    scribble(path / name, bytes);
  }
  EXPECT_NO_THROW(Checkpoint{path});
}

TEST(Checkpoint, ATornMissingOrExtraFileIsRefusedByName) {
  const TemporaryFolder folder;
  Model model;
  model.train(2);
  const Path path = model.save(folder);
  for (const auto& [name, bytes] : content_of(path)) {
    scribble(path / name, bytes.substr(0, bytes.size() - 1));
    EXPECT_THAT(error_of([&] { Checkpoint{path}; }), HasSubstr(name)) << "torn";
    scribble(path / name, "");
    EXPECT_THAT(error_of([&] { Checkpoint{path}; }), HasSubstr(name)) << "empty";
    fs::remove(path / name);
    EXPECT_THAT(error_of([&] { Checkpoint{path}; }), HasSubstr(name)) << "missing";
    scribble(path / name, bytes);
  }
  scribble(path / "tables" / "stranger.safetensors", "x");
  EXPECT_THAT(error_of([&] { Checkpoint{path}; }), HasSubstr("stranger.safetensors"));
}

TEST(Checkpoint, ATornOneOffersItsNewestWholeNeighbour) {
  const TemporaryFolder folder;
  Model model;
  std::vector<Path> paths;
  for (int i = 0; i < 4; ++i) {
    model.train(1);
    paths.push_back(model.save(folder));
  }
  fs::resize_file(paths[3] / "dense.safetensors", 10);
  fs::remove(paths[2] / "manifest.json");
  EXPECT_THAT(
      error_of([&] { Checkpoint{paths[3]}; }),
      AllOf(HasSubstr("dense.safetensors"), HasSubstr("step_00000002"), Not(HasSubstr("step_00000003"))));
  EXPECT_THAT(error_of([&] { Checkpoint{folder / "step_00000099"}; }), HasSubstr("step_00000002"));
}

TEST(Checkpoint, RefusesAnotherModelSeedOrOptimizerBeforeTouchingAnything) {
  const TemporaryFolder folder;
  Model model;
  model.train(2);
  const Checkpoint checkpoint(model.save(folder));

  Model other_seed(2);
  EXPECT_THAT(error_of([&] { checkpoint.load(table_sections(other_seed.tables)); }), HasSubstr("seed"))
      << "new rows would have other initial values";
  EXPECT_EQ(other_seed.tables.rows_alive(), 0);
  Model other_optimizer(1, RowOptimizerKind::rowwise_adagrad);
  EXPECT_THAT(error_of([&] { checkpoint.load(table_sections(other_optimizer.tables)); }),
              HasSubstr("rowwise_adagrad"));

  const auto load_dense = [&](const NamedTensors& parameters) {
    return error_of([&] { checkpoint.load(std::vector{parameters_section(parameters)}); });
  };
  Model other_names;
  other_names.storage[1].name = "head.bias2";
  EXPECT_THAT(load_dense(other_names.list), HasSubstr("head.bias2"));
  EXPECT_EQ(other_names.storage[0].value.data<float>()[0], 0.0f);
  EXPECT_THAT(load_dense({model.list[0]}), HasSubstr("head.bias"));
  Model other_shape;
  other_shape.storage[0].value = Tensor::zeros({4, 3}, DType::f32);
  EXPECT_THAT(load_dense(other_shape.list), HasSubstr("head.weight"));
  DenseOptimizer sgd(model.list, {.kind = DenseOptimizerKind::sgd});
  EXPECT_THROW(checkpoint.load(std::vector{optimizer_section(sgd)}), Error);
}

// Traps: a table that the configuration no longer has is dropped; one that it has added is silently new.
TEST(Checkpoint, RefusesSectionsThatTheModelOrTheCheckpointLacks) {
  const TemporaryFolder folder;
  Model model;
  model.train(2);
  const Checkpoint checkpoint(model.save(folder));
  Model same;
  std::vector<Section> fewer = same.sections();
  fewer.pop_back();
  EXPECT_THAT(error_of([&] { checkpoint.load(fewer); }), HasSubstr("tables/user.safetensors"));
  TableSet artists({{"artist", 9, 6}}, {.kind = RowOptimizerKind::adam}, 1);
  EXPECT_THAT(error_of([&] { checkpoint.load(table_sections(artists)); }), HasSubstr("tables/artist"));
  Model fresh;
  std::vector<Section> more = fresh.sections();
  more.push_back({.name = "new", .save = {}, .load = {}, .may_be_absent = true});
  EXPECT_NO_THROW(checkpoint.load(more));
}

TEST(Checkpoint, SavingAStepAgainReplacesIt) {
  const TemporaryFolder folder;
  Model model;
  model.train(3);
  model.save(folder);
  Model other;
  other.step = 2;
  other.train(1);
  const Path path = other.save(folder);
  EXPECT_EQ(content_of(path), content_of(other.save(folder / "apart")));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(Path(folder)))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, testing::UnorderedElementsAre("step_00000003", "apart"));
}

// In any part of the state: parameter, optimizer's moment, row, row's state.
TEST(Checkpoint, OneWithAValueThatIsNotFiniteIsNeverWritten) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<std::string, std::function<void(Model&)>>> cases{
      {"parameter head.bias", [&](Model& m) { m.list[1]->value.mutable_data<float>()[2] = nan; }},
      {"optimizer state v.head.weight",
       [&](Model& m) { m.optimizer.state()[1].tensor.mutable_data<float>()[11] = -inf; }},
      {"the row of id 14 in embedding table item", [&](Model& m) { m.update(0, 14, 1.0f, 1e300); }},
      {"the optimizer's state of id 7 in embedding table user",
       [&](Model& m) { m.update(1, 7, 1e30f, 0.01); }}};
  for (const auto& [what, spoil] : cases) {
    const TemporaryFolder folder;
    Model model;
    model.train(3);
    model.save(folder);
    const auto before = content_of(folder);
    model.train(1);
    spoil(model);
    EXPECT_THAT(error_of<NotFiniteError>([&] { model.save(folder); }), HasSubstr(what));
    EXPECT_EQ(content_of(folder), before);
    EXPECT_EQ(list_checkpoints(folder).size(), 1u);
  }
}

// Such checkpoints were written by earlier versions.
TEST(Checkpoint, OneWithAValueThatIsNotFiniteIsRefusedAndAGoodOneIsOffered) {
  const TemporaryFolder folder;
  Model model;
  std::vector<Path> paths;
  for (int i = 0; i < 3; ++i) {
    model.train(1);
    paths.push_back(model.save(folder));
  }
  spoil_file(paths[2], "tables/item.safetensors", "rows", 6 * 2 + 1);
  spoil_file(paths[1], "dense.safetensors", "head.bias", 0);
  const std::int64_t id = model.tables[0].places_by_id()[2].id;
  EXPECT_THAT(error_of([&] { Checkpoint{paths[2]}; }),
              AllOf(HasSubstr("tables/item.safetensors"), HasSubstr(fmt::format("\"rows\", id {}", id)),
                    HasSubstr("nan"), HasSubstr("step_00000001"), Not(HasSubstr("step_00000002"))));
  EXPECT_THAT(error_of([&] { Checkpoint{paths[1]}; }), HasSubstr("\"head.bias\""));
}

// Limits the size of files for one scope, which fails like a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(Checkpoint, AForgedEntryOfATableIsNamed) {
  const TemporaryFolder folder;
  Model model;
  const Path path = model.save(folder);
  const CheckpointManifest manifest = read_checkpoint_manifest(path);
  const auto forged = [&](const char* key, const nlohmann::json& value) {
    CheckpointManifest other = manifest;
    if (value.is_null())
      other.tables[1].erase(key);
    else
      other.tables[1][key] = value;
    write_checkpoint_manifest(path, other);
    return error_of([&] { Checkpoint{path}; });
  };
  EXPECT_THAT(forged("name", 7), HasSubstr("manifest.json: tables[1].name: expected a text, found 7"));
  EXPECT_THAT(forged("optimizer", 7), HasSubstr("tables[1].optimizer: expected a text, found 7"));
  EXPECT_THAT(forged("dim", nullptr), HasSubstr("tables[1].dim: expected a count, found null"));
  EXPECT_THAT(forged("rows", "x"), HasSubstr("tables[1].rows: expected a count, found \"x\""));
  EXPECT_THAT(forged("rows_alive", -1), HasSubstr("tables[1].rows_alive: expected a count, found -1"));
  EXPECT_THAT(forged("state_width", 1.5), HasSubstr("tables[1].state_width: expected a count, found 1.5"));
  CheckpointManifest other = manifest;
  other.tables = "none";
  write_checkpoint_manifest(path, other);
  EXPECT_THAT(error_of([&] { Checkpoint{path}; }),
              HasSubstr("manifest.json: tables: expected a list, found string"));
}

TEST(Checkpoint, AFullDiskNamesTheFileAndLeavesEarlierCheckpointsAlone) {
  const TemporaryFolder folder;
  Model model;
  model.train(2);
  const Path earlier = model.save(folder);
  const auto before = content_of(earlier);
  for (const bool same_step : {false, true}) {
    if (!same_step) model.train(1);
    model.step = same_step ? 2 : 3;
    for (const rlim_t bytes : {0, 100, 500, 700, 1000}) {
      const std::string error = [&] {
        const FullDisk full(bytes);
        return error_of([&] { model.save(folder); });
      }();
      EXPECT_THAT(error, HasSubstr(model.step == 2 ? "step_00000002" : "step_00000003")) << bytes;
      EXPECT_THAT(error, testing::ContainsRegex("safetensors|manifest.json")) << bytes;
      EXPECT_EQ(content_of(folder).size(), before.size()) << "no partial file remains";
      EXPECT_EQ(content_of(earlier), before);
    }
  }
  EXPECT_NO_THROW(Checkpoint{earlier});
  EXPECT_NO_THROW(model.save(folder));
}

}  // namespace
}  // namespace hstu
