#include "hstu/run/table_files.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/finite.h"
#include "hstu/base/npy.h"
#include "hstu/base/text.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/checkpoint/safetensors_dtype.h"
#include "hstu/checkpoint/verify.h"
#include "hstu/dataset/names.h"
#include "hstu/embedding/saved_table.h"
#include "hstu/embedding/written_table.h"
#include "hstu/run/folder.h"
#include "hstu/run/pruned.h"
#include "hstu/run/state.h"

namespace hstu {
namespace {

// Names of tables come from command lines and files of others.
std::string section_of(const std::string& table) {
  if (!is_plain_name(table)) fail_usage("the table \"{}\": expected {}", table, kPlainName);
  return "tables/" + table;
}

nlohmann::json exported(const SavedTable& table) {
  nlohmann::json description = identity_of(table.description());
  for (const char* of_training : {"optimizer", "state_width"}) description.erase(of_training);
  return description;
}

Json summary_of(const CheckpointManifest& manifest) {
  Json json{{"step", manifest.step}};
  if (manifest.base) json["since"] = manifest.base->step;
  json["tables"] = Json::array();
  for (const auto& table : manifest.tables) {
    Json entry{{"name", table.at("name")}, {"rows", table.at("rows_alive").get<std::int64_t>()}};
    if (table.contains("increment")) {
      entry["changed"] = table.at("increment").at("rows").get<std::int64_t>();
      entry["gone"] = table.at("increment").at("gone").get<std::int64_t>();
    }
    json["tables"].push_back(std::move(entry));
  }
  return json;
}

Json finish(StagedFolder& staged, CheckpointManifest& manifest) {
  write_checkpoint_manifest(staged.path(), manifest);
  staged.commit();
  return summary_of(manifest);
}

// An export on disk, every byte and value checked.
CheckpointLayer open_export(const Path& path) {
  CheckpointLayer layer{path, read_checkpoint_manifest(path)};
  check(layer.manifest.state.contains("source"), "{} is not an export of hstu export tables", path.string());
  verify_checkpoint(path, layer.manifest);
  return layer;
}

void check_follows(const CheckpointLayer& last, const CheckpointLayer& next) {
  const auto& base = next.manifest.base;
  check(base.has_value(), "{} has every row: name it first, and then the exports that follow it",
        next.path.string());
  check(base->step == last.manifest.step,
        "{} has the changes since step {}, and {} before it ends at step {}: the export from step {} to "
        "step {} is missing, or the order is wrong",
        next.path.string(), base->step, last.path.string(), last.manifest.step,
        std::min(base->step, last.manifest.step), std::max(base->step, last.manifest.step));
  check(base->checksum == last.manifest.identity(),
        "{} has the changes since another checkpoint of step {} than that of {}: they are of two runs, or "
        "the run went back",
        next.path.string(), base->step, last.path.string());
}

template <typename T>
std::vector<T> elements(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy_n(bytes.data(), values.size() * sizeof(T), reinterpret_cast<std::byte*>(values.data()));
  return values;
}
template <typename To, typename From>
std::vector<To> converted(std::span<const std::byte> bytes) {
  const std::vector<From> values = elements<From>(bytes);
  return {values.begin(), values.end()};
}

// The elements of a .npy file of `dimensions` dimensions and one of two types.
template <typename T, typename Other>
std::vector<T> read_npy(const Path& path, std::size_t dimensions, std::vector<std::int64_t>& shape) {
  const MappedFile file(path);
  const NpyHeader header = parse_npy_header(file.bytes(), path);
  check(header.shape.size() == dimensions, "{}: expected {} dimensions, found {}", path.string(), dimensions,
        header.shape.size());
  shape = header.shape;
  const auto data = file.bytes().subspan(header.data_offset);
  if (header.type == npy_type<T>()) return elements<T>(data);
  check(header.type == npy_type<Other>(), "{}: expected elements of type {} or {}, found {}", path.string(),
        npy_type<T>(), npy_type<Other>(), header.type);
  return converted<T, Other>(data);
}

bool is_npy(const Path& path) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

// The names of a text file, one on each line.
std::vector<std::int64_t> ids_of_names(const Path& path) {
  const std::string text = read_file(path);
  std::vector<std::int64_t> ids;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view name(text.data() + begin, end - begin);
    if (name.ends_with('\r')) name.remove_suffix(1);
    check(!name.empty(), "{}: line {} has no name", path.string(), ids.size() + 1);
    ids.push_back(id_of_text(name));
    begin = end + 1;
  }
  return ids;
}

std::vector<std::int64_t> read_ids(const Path& path) {
  if (!is_npy(path)) return ids_of_names(path);
  std::vector<std::int64_t> shape;
  return read_npy<std::int64_t, std::int32_t>(path, 1, shape);
}

void write_npy_rows(const Path& folder, const NpyRows& from, CheckpointManifest& manifest) {
  std::vector<std::int64_t> shape;
  const std::vector<float> rows = read_npy<float, double>(from.rows, 2, shape);
  const std::vector<std::int64_t> ids = read_ids(from.ids);
  check(shape[0] == std::ssize(ids), "{} has {} rows, and {} has {} ids", from.rows.string(), shape[0],
        from.ids.string(), ids.size());
  check(shape[1] >= 1, "{}: expected rows of at least 1 value", from.rows.string());
  const auto dim = static_cast<std::size_t>(shape[1]);
  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ids[a] < ids[b]; });
  std::vector<std::int64_t> sorted;
  for (const std::size_t i : order) {
    check(ids[i] >= 0, "{}: id {} of row {} is negative", from.ids.string(), ids[i], i);
    check(sorted.empty() || sorted.back() != ids[i], "{}: id {} occurs twice, the second time in row {}",
          from.ids.string(), ids[i], i);
    check(all_finite(rows.data() + i * dim, shape[1]), "{}: row {} (id {}) has a value that is not finite",
          from.rows.string(), i, ids[i]);
    sorted.push_back(ids[i]);
  }
  SectionWriter writer(folder, section_of(from.table), manifest);
  write_rows(writer,
             {{"name", from.table}, {"rows", sorted.empty() ? 0 : sorted.back() + 1}, {"dim", shape[1]}},
             sorted, [&](std::size_t i) { return std::span(rows).subspan(order[i] * dim, dim); });
}

// Every tensor of a file of others, under the names of our parameters.
void write_dense(const Path& folder, const Path& from, CheckpointManifest& manifest) {
  const SafetensorsFile file(from);
  for (const TensorSpec& tensor : file.tensors()) {
    check(tensor.dtype == DType::f32, "{}: tensor \"{}\": expected F32, found {}", from.string(), tensor.name,
          safetensors_name(tensor.dtype));
    const auto values = file.values<float>(tensor.name, tensor.shape);
    check(first_not_finite(values.data(), std::ssize(values)) == std::ssize(values),
          "{}: tensor \"{}\" has a value that is not finite", from.string(), tensor.name);
  }
  SectionWriter writer(folder, "dense", manifest);
  writer.begin(file.tensors());
  for (const TensorSpec& tensor : file.tensors()) {
    const auto values = file.values<float>(tensor.name, tensor.shape);
    writer.write(values.data(), values.size_bytes());
  }
  writer.close();
}

// The checkpoint of `since`, a step of the run or a folder.
Checkpoint open_before(const std::string& since, const Path& checkpoints, const Checkpoint& now) {
  const auto step = parse_number<std::int64_t>(since);
  if (!step) return Checkpoint(since);
  if (*step < 0 || *step >= now.step())
    fail_usage("--since {}: expected a step before {}, that of the checkpoint", since, now.step());
  return Checkpoint(find_checkpoint(checkpoints, *step));
}

// A reader of changes goes on with the tables that it has.
void check_same_tables(const Checkpoint& before, const Checkpoint& now) {
  std::map<std::string, std::int64_t> widths;
  for (const auto& table : before.manifest().tables)
    widths[table.at("name").get<std::string>()] = table.at("dim").get<std::int64_t>();
  for (const auto& table : now.manifest().tables) {
    const auto name = table.at("name").get<std::string>();
    const auto width = table.at("dim").get<std::int64_t>();
    const auto found = widths.find(name);
    if (found != widths.end() && found->second == width) continue;
    fail_usage("{} has {} for the table {} of width {} in {}: export every row, without --since",
               before.path().string(),
               found == widths.end() ? "no rows" : fmt::format("rows of width {}", found->second), name,
               width, now.path().string());
  }
}

Json export_tables_of(const Path& checkpoint, const TableExportOptions& options) {
  const Checkpoint now(checkpoint);
  std::optional<Checkpoint> before;
  if (!options.since.empty()) {
    before.emplace(open_before(options.since, checkpoint.parent_path(), now));
    check_same_tables(*before, now);
  }
  StagedFolder staged(options.output);
  CheckpointManifest manifest{
      .step = now.step(),
      .state = {{"reason", "export of tables"},
                {"dataset", saved_dataset(now)},
                {"source", {{"step", now.step()}, {"checksum", now.manifest().identity()}}}},
      .tables = nlohmann::json::array(),
      .files = {}};
  if (before) manifest.base = {before->step(), before->manifest().identity(), 1};
  for (const auto& table : now.manifest().tables) {
    const auto name = table.at("name").get<std::string>();
    const SavedTable rows(now.section(section_of(name)));
    SectionWriter writer(staged.path(), section_of(name), manifest);
    if (before)
      write_changes(writer, exported(rows), SavedTable(before->section(section_of(name))), rows);
    else
      write_whole(writer, exported(rows), rows);
  }
  return finish(staged, manifest);
}

}  // namespace

Json export_tables(const TableExportOptions& options) {
  return read_checkpoint(open_run_folder(options.run).checkpoints(), options.checkpoint,
                         [&](const Path& checkpoint) { return export_tables_of(checkpoint, options); });
}

Json join_exports(const std::vector<Path>& exports, const Path& output) {
  require(!exports.empty(), "expected an export");
  std::vector<CheckpointLayer> chain;
  for (const Path& path : exports) {
    chain.push_back(open_export(path));
    if (chain.size() > 1) {
      check_follows(chain[chain.size() - 2], chain.back());
    } else if (const auto& base = chain.front().manifest.base) {
      fail(
          "{} has only the changes since step {}: name before it the exports that it follows, the first "
          "of which has every row",
          path.string(), base->step);
    }
  }
  StagedFolder staged(output);
  CheckpointManifest manifest{.step = chain.back().manifest.step,
                              .state = chain.back().manifest.state,
                              .tables = nlohmann::json::array(),
                              .files = {}};
  for (const auto& table : chain.back().manifest.tables) {
    const auto name = table.at("name").get<std::string>();
    const auto section = [&](const CheckpointLayer& layer) {
      return SectionReader(layer.path, section_of(name), layer.manifest);
    };
    SavedTable rows(section(chain.front()));
    for (std::size_t i = 1; i < chain.size(); ++i) rows.apply(section(chain[i]));
    SectionWriter writer(staged.path(), section_of(name), manifest);
    write_whole(writer, exported(rows), rows);
  }
  return finish(staged, manifest);
}

Json import_npy(const std::vector<NpyRows>& tables, const Path& output, const Path& dense) {
  StagedFolder staged(output);
  CheckpointManifest manifest{.step = 0,
                              .state = {{"reason", "rows from NumPy"}, {"dataset", ""}},
                              .tables = nlohmann::json::array(),
                              .files = {}};
  for (const NpyRows& table : tables) write_npy_rows(staged.path(), table, manifest);
  if (!dense.empty()) write_dense(staged.path(), dense, manifest);
  return finish(staged, manifest);
}

}  // namespace hstu
