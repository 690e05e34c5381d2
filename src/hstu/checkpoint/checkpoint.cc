#include "hstu/checkpoint/checkpoint.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/checkpoint/safetensors.h"

namespace hstu {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kDense = "dense.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";

std::string table_name(const std::string& table) {
  return "tables/" + table + ".safetensors";
}

ManifestFile close(SafetensorsWriter& writer) {
  writer.close();
  fault_point("save.file");
  return {writer.bytes(), writer.checksum()};
}

ManifestFile write_dense(const Path& path, const NamedTensors& parameters) {
  std::vector<TensorSpec> specs;
  for (const Parameter* p : parameters) specs.push_back({p->name, p->value.dtype(), p->value.shape()});
  SafetensorsWriter writer(path, specs);
  for (const Parameter* p : parameters) writer.write(p->value);
  return close(writer);
}

ManifestFile write_optimizer(const Path& path, const DenseOptimizer& optimizer) {
  std::vector<TensorSpec> specs{{"step", DType::i64, {1}}};
  for (const auto& [name, tensor] : optimizer.state())
    specs.push_back({name, tensor.dtype(), tensor.shape()});
  SafetensorsWriter writer(path, specs);
  const std::int64_t steps = optimizer.steps();
  writer.write(&steps, sizeof steps);
  for (const auto& [name, tensor] : optimizer.state()) writer.write(tensor);
  return close(writer);
}

ManifestFile write_table(const Path& path, const EmbeddingTable& table) {
  const std::vector<EmbeddingTable::Row> rows = table.rows_by_id();
  const auto n = static_cast<std::int64_t>(rows.size());
  const std::int64_t dim = table.config().dim, width = table.state_width();
  SafetensorsWriter writer(
      path, {{"ids", DType::i64, {n}}, {"rows", DType::f32, {n, dim}}, {"state", DType::f32, {n, width}}});
  for (const auto& row : rows) writer.write(&row.id, sizeof row.id);
  for (const auto& row : rows) writer.write(row.values, static_cast<std::size_t>(dim) * sizeof(float));
  for (const auto& row : rows) writer.write(row.state, static_cast<std::size_t>(width) * sizeof(float));
  return close(writer);
}

// What must agree between a table and the one saved: rows and key decide the values of rows not seen yet.
json identity(const EmbeddingTable& table) {
  return {{"name", table.config().name},
          {"rows", table.config().rows},
          {"dim", table.config().dim},
          {"key", fmt::format("{:016x}", table.key())},
          {"optimizer", to_string(table.optimizer().kind)},
          {"state_width", table.state_width()}};
}

json describe(const EmbeddingTable& table) {
  json description = identity(table);
  description["rows_alive"] = table.rows_alive();
  return description;
}

// The newest other checkpoint of the same folder that looks whole by names and sizes.
std::optional<CheckpointEntry> neighbour_of(const Path& path) {
  auto entries = list_checkpoints(path.parent_path().empty() ? Path(".") : path.parent_path());
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->path.filename() == path.filename()) continue;
    try {
      verify_files(entry->path, read_checkpoint_manifest(entry->path), /*bytes=*/false);
      return *entry;
    } catch (const Error&) {
      continue;  // Torn as well.
    }
  }
  return std::nullopt;
}

}  // namespace

Path save_checkpoint(const Path& folder, std::int64_t step, const NamedTensors& parameters,
                     const DenseOptimizer& optimizer, const TableSet& tables, const json& state,
                     const std::function<void()>& before_rename) {
  const Path path = folder / checkpoint_name(step);
  const bool replaces = fs::exists(path);
  const Path target = replaces ? Path(path.string() + ".new") : path;
  if (replaces) {
    std::error_code ignored;
    fs::remove_all(target, ignored);  // What an interrupted replacement left behind.
  }
  StagedFolder staged(target);
  std::error_code error;
  fs::create_directories(staged.path() / "tables", error);
  if (error) fail("cannot create the folder {}: {}", (staged.path() / "tables").string(), error.message());

  CheckpointManifest manifest{.step = step, .state = state, .tables = json::array(), .files = {}};
  manifest.files[kDense] = write_dense(staged.path() / kDense, parameters);
  manifest.files[kOptimizer] = write_optimizer(staged.path() / kOptimizer, optimizer);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const std::string file = table_name(tables[i].config().name);
    manifest.files[file] = write_table(staged.path() / file, tables[i]);
    manifest.tables.push_back(describe(tables[i]));
  }
  write_checkpoint_manifest(staged.path(), manifest);
  fault_point("save.staged");
  if (before_rename) before_rename();
  fault_point("save.rename");
  staged.commit();
  if (replaces) replace_folder(target, path);
  return path;
}

Checkpoint::Checkpoint(Path path) : path_(std::move(path)) {
  if (path_.filename().empty()) path_ = path_.parent_path();  // "step_00000042/"
  std::error_code ignored;
  if (fs::is_symlink(path_, ignored) && fs::exists(path_)) path_ = fs::canonical(path_);  // "current"
  try {
    manifest_ = read_checkpoint_manifest(path_);
    verify_files(path_, manifest_, /*bytes=*/true);
  } catch (const Error& error) {
    const auto other = neighbour_of(path_);
    fail("{}{}", error.what(),
         other ? fmt::format("; {0} stands beside it: use step {1} (hstu train --from-step {1}, hstu eval "
                             "--checkpoint {1})",
                             other->path.string(), other->step)
               : "");
  }
}

Path Checkpoint::dense_file() const {
  return path_ / kDense;
}

Path Checkpoint::table_file(const std::string& table) const {
  return path_ / table_name(table);
}

void Checkpoint::load(const NamedTensors& parameters) const {
  const SafetensorsFile file(dense_file());
  std::vector<TensorSpec> expected;
  for (const Parameter* p : parameters) expected.push_back({p->name, p->value.dtype(), p->value.shape()});
  file.expect(expected);
  for (Parameter* p : parameters) file.read(p->name, p->value);
}

void Checkpoint::load(DenseOptimizer& optimizer) const {
  const SafetensorsFile file(path_ / kOptimizer);
  std::vector<TensorSpec> expected{{"step", DType::i64, {1}}};
  for (const auto& [name, tensor] : optimizer.state())
    expected.push_back({name, tensor.dtype(), tensor.shape()});
  file.expect(expected);
  for (auto& [name, tensor] : optimizer.state()) file.read(name, tensor);
  optimizer.set_steps(file.values<std::int64_t>("step", {1})[0]);
}

void Checkpoint::load(TableSet& tables) const {
  check(manifest_.tables.size() == tables.size(), "{}: expected {} embedding tables, found {}",
        path_.string(), tables.size(), manifest_.tables.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    json saved = manifest_.tables[i];
    saved.erase("rows_alive");
    const json expected = identity(tables[i]);
    check(saved == expected,
          "{}: embedding table {}: expected {}, found {}: the configuration or the seed changed",
          path_.string(), i, expected.dump(), saved.dump());
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    EmbeddingTable& table = tables[i];
    const SafetensorsFile file(table_file(table.config().name));
    const auto n = manifest_.tables[i].at("rows_alive").get<std::int64_t>();
    table.restore(file.values<std::int64_t>("ids", {n}),
                  file.values<float>("rows", {n, table.config().dim}).data(),
                  file.values<float>("state", {n, table.state_width()}).data());
  }
}

}  // namespace hstu
