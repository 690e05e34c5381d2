#include "hstu/predict/export_vectors.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/base/progress.h"
#include "hstu/base/version.h"
#include "hstu/options/make_task.h"
#include "hstu/predict/converter.h"
#include "hstu/predict/histories.h"
#include "hstu/score/model_folder.h"
#include "hstu/score/retriever.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {
namespace {

constexpr const char* kVectorsFormat = "hstu-vectors";
constexpr int kVectorsVersion = 1;

// Rows of floats as .npy; their number is known last.
class NpyRows {
 public:
  NpyRows(const Path& path, std::int64_t width) : file_(path), shape_{0, width} {
    file_.write(npy_header(npy_type<float>(), shape_));
  }
  void append(std::span<const float> rows) {
    file_.write(rows.data(), rows.size_bytes());
    shape_[0] += static_cast<std::int64_t>(rows.size()) / shape_[1];
  }
  void close() {
    const std::string header = npy_header(npy_type<float>(), shape_);
    file_.overwrite(0, header.data(), header.size());
    file_.close();
  }

 private:
  OutputFile file_;
  std::array<std::int64_t, 2> shape_;
};

// Of the users that have a history; returns their number.
std::int64_t write_users(Retriever& retriever, const Dataset& dataset, std::int64_t batch,
                         const Path& folder) {
  NpyRows rows(folder / "users.f32.npy", retriever.width());
  NpyWriter<std::int64_t> ids(folder / "user_ids.i64.npy");
  Progress progress("export", dataset.users(), "users");
  std::vector<Retriever::User> users;
  const auto write = [&] {
    const Retriever::Answers found = retriever.answers(users);
    rows.append(found.vectors);
    for (const std::int64_t u : found.user) ids.append(users[static_cast<std::size_t>(u)].user);
    users.clear();
  };
  for (std::int64_t u = 0; u < dataset.users(); ++u) {
    const UserEvents events = dataset.events_of(u);
    if (!events.empty())
      users.push_back({.user = dataset.user_ids()[static_cast<std::size_t>(u)],
                       .time = dataset.time()[events.latest()],
                       .before = events});
    if (std::ssize(users) == batch) write();
    progress.advance_to(u + 1);
  }
  if (!users.empty()) write();
  rows.close();
  ids.close();
  progress.finish("");
  return ids.count();
}

void write_parquet(const Path& folder, const char* rows, const char* ids, const char* parquet) {
  const Converter converter =
      start_converter({"from-npy", (folder / rows).string(), "--ids", (folder / ids).string(), "--output",
                       (folder / parquet).string()},
                      Direction::from);
  ::close(converter.descriptor);
  check(end_converter(converter.process) == 0, "cannot write {}: see the message of hstu prepare above",
        (folder / parquet).string());
}

}  // namespace

Json export_vectors(const ExportOptions& options) {
  const ModelFolder model = open_model_folder(options.run, options.checkpoint);
  StagedFolder staged(options.output);
  const Histories histories(model, options.data, {}, {}, {});
  const Dataset& dataset = histories.dataset();
  Retriever retriever(model.options, model.checkpoint, dataset, dataset,
                      make_task(model.options, facts_of(dataset)));
  if (!retriever.compares_vectors())
    fail_usage("--vectors: a model of this kind finds lists of items, and has no vectors of them");
  const Path& folder = staged.path();
  NpyRows items(folder / "items.f32.npy", retriever.width());
  items.append(retriever.item_vectors());
  items.close();
  write_npy(folder / "ids.i64.npy", retriever.items());
  const std::int64_t users = write_users(retriever, dataset, evaluation_batch_size(model.options), folder);
  write_parquet(folder, "items.f32.npy", "ids.i64.npy", "items.parquet");
  write_parquet(folder, "users.f32.npy", "user_ids.i64.npy", "users.parquet");
  Json manifest{{"format", kVectorsFormat},
                {"version", kVectorsVersion},
                {"program", version()},
                {"step", model.checkpoint.step()},
                {"dataset", {{"name", dataset.manifest().name}, {"id", dataset.manifest().id}}},
                {"metric", "inner_product"},
                {"normalised", retriever.catalogue().unit},
                {"dim", retriever.width()},
                {"items", retriever.items().size()},
                {"users", users}};
  write_file(folder / "manifest.json", manifest.dump(2) + "\n");
  staged.commit();
  return manifest;
}

}  // namespace hstu
