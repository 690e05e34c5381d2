#include "hstu/run/warm_start.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "hstu/base/contains.h"
#include "hstu/base/text.h"
#include "hstu/batching/all_items.h"
#include "hstu/batching/attribute_of_items.h"
#include "hstu/batching/id_counts.h"
#include "hstu/config/config_source.h"
#include "hstu/embedding/table_section.h"
#include "hstu/optimizer/optimizer_section.h"
#include "hstu/run/folder.h"
#include "hstu/run/state.h"

namespace hstu {
namespace {

using NamePairs = std::map<std::string, std::string>;  // of this model, of the other

struct NameMap {
  NamePairs parameters, tables;
};

NamePairs read_names(const toml::table& file, const char* section, const Path& path) {
  NamePairs names;
  const toml::table* const table = file[section].as_table();
  if (table == nullptr) return names;
  for (const auto& [mine, theirs] : *table) {
    if (!theirs.is_string())
      fail_usage("{}: {}.\"{}\": expected a name in quotes", path.string(), section, mine.str());
    names.emplace(mine.str(), theirs.value<std::string>().value_or(""));
  }
  return names;
}

NameMap read_name_map(const Path& path) {
  if (path.empty()) return {};
  const toml::table file = config_tables(read_config_file(path), path.string(), {});
  for (const auto& [section, node] : file) {
    if (section.str() != "parameters" && section.str() != "tables")
      fail_usage("{}: expected [parameters] and [tables], found {}", path.string(), section.str());
  }
  return {read_names(file, "parameters", path), read_names(file, "tables", path)};
}

void check_names(const NamePairs& names, const std::vector<std::string>& mine,
                 const std::vector<std::string>& theirs, const std::string& what) {
  for (const auto& [here, there] : names) {
    if (!contains(mine, here))
      fail_usage("name map: this model has no {} \"{}\"{}", what, here, suggestion(here, mine));
    if (!contains(theirs, there))
      fail_usage("name map: the checkpoint has no {} \"{}\"{}", what, there, suggestion(there, theirs));
  }
}

// Pairs the names of both models and records the outcome for each in the report.
class Pairing {
 public:
  Pairing(WarmStartReport& report, const NamePairs& names, const std::vector<std::string>& mine,
          const std::vector<std::string>& theirs, std::string prefix, const std::string& what)
      : report_(report), names_(names), unused_(theirs.begin(), theirs.end()), prefix_(std::move(prefix)) {
    check_names(names, mine, theirs, what);
    // A name that the map assigns is not matched a second time under its own name.
    for (const auto& [here, there] : names_) given_.insert(there);
  }
  ~Pairing() {
    for (const std::string& name : unused_) report_.unused.push_back(prefix_ + name);
  }
  Pairing(const Pairing&) = delete;
  Pairing& operator=(const Pairing&) = delete;

  // take(theirs) copies and returns "", or returns why it does not fit.
  template <typename Take>
  void pair(const std::string& mine, const Take& take) {
    const auto mapped = names_.find(mine);
    const std::string theirs = mapped == names_.end() ? mine : mapped->second;
    if (!unused_.contains(theirs) || (mapped == names_.end() && given_.contains(theirs))) {
      report_.initial.push_back(prefix_ + mine);
      return;
    }
    const std::string misfit = take(theirs);
    if (!misfit.empty()) {
      report_.misfitting.push_back(fmt::format("{}{}: {}", prefix_, mine, misfit));
    } else if (mine == theirs) {
      report_.matched.push_back(prefix_ + mine);
    } else {
      report_.renamed.push_back(fmt::format("{0}{1}, from {0}{2}", prefix_, mine, theirs));
    }
    unused_.erase(theirs);
  }

 private:
  WarmStartReport& report_;
  const NamePairs& names_;
  std::set<std::string> unused_, given_;
  std::string prefix_;
};

// Copies the state of a parameter that is `theirs` there.
void take_state(const SafetensorsFile& file, const std::string& theirs, DenseOptimizer::State& state,
                const DenseOptimizer& optimizer) {
  const Parameter& parameter = *optimizer.parameters()[state.parameter];
  const auto whole =
      file.values<float>(state.name.substr(0, 2) + theirs, parameter.whole_shape());  // "m.", "v."
  std::vector<float> part;
  if (parameter.division.is_divided()) {
    part.resize(static_cast<std::size_t>(parameter.value.size()));
    copy_from_whole(parameter.division, whole.data(), part.data());
  }
  copy_bytes(state.tensor.mutable_raw(), (part.empty() ? whole.data() : part.data()) + state.begin,
             state.tensor.bytes(), optimizer.context().stream);
  optimizer.context().stream.synchronize();
}

// The states of the parameters that were taken, by their names here and there. Those of the others are new:
// they begin now. All ranks find the same, whatever their shards have.
void take_states(WarmStartReport& report, const NamePairs& taken, const Checkpoint& checkpoint,
                 DenseOptimizer& optimizer) {
  const auto refuse = [&](const char* why) { report.new_states = why; };
  const std::vector<TensorSpec> mine = optimizer.whole_state();
  if (mine.empty()) return;
  if (!checkpoint.has("optimizer")) return refuse("the checkpoint has no states of the dense optimizer");
  const SectionReader section = checkpoint.section("optimizer");
  const SafetensorsFile file = section.file();
  const auto has = [](const auto& list, const char* kind) {
    return std::any_of(list.begin(), list.end(), [&](const auto& one) { return one.name.starts_with(kind); });
  };
  const bool is_adam = has(mine, "v.");
  if (has(file.tensors(), "v.") != is_adam) return refuse("the dense optimizer there is of another kind");
  const auto has_state = [&](const std::string& theirs, const Shape& shape) {
    return std::any_of(file.tensors().begin(), file.tensors().end(), [&](const TensorSpec& spec) {
      return spec.name == "m." + theirs && spec.shape == shape;
    });
  };
  const std::int64_t steps = file.values<std::int64_t>("step", {1})[0];
  std::vector<std::string> theirs;  // of each parameter; "": it has no state there
  std::vector<std::int64_t> begun;
  for (const Parameter* p : optimizer.parameters()) {
    const auto found = taken.find(p->name);
    const bool known = found != taken.end() && has_state(found->second, p->whole_shape());
    theirs.push_back(known ? found->second : "");
    begun.push_back(known ? saved_begun(section, found->second) : is_adam ? steps : 0);
    report.parameter_states += known ? 1 : 0;
  }
  if (report.parameter_states == 0) return;
  for (DenseOptimizer::State& state : optimizer.state())
    if (const std::string& name = theirs[state.parameter]; !name.empty())
      take_state(file, name, state, optimizer);
  optimizer.set_steps(steps);
  optimizer.set_begun(std::move(begun));
}

// By their names here and there.
NamePairs take_parameters(WarmStartReport& report, const NamePairs& names, const Checkpoint& checkpoint,
                          const NamedTensors& parameters, const Stream& stream) {
  NamePairs taken;
  if (!checkpoint.has("dense")) {  // an export of tables
    for (const Parameter* p : parameters) report.initial.push_back(p->name);
    return taken;
  }
  const SafetensorsFile file = checkpoint.section("dense").file();
  std::vector<std::string> mine, theirs;
  std::map<std::string, TensorSpec> specs;
  for (const Parameter* p : parameters) mine.push_back(p->name);
  for (const TensorSpec& spec : file.tensors()) {
    theirs.push_back(spec.name);
    specs[spec.name] = spec;
  }
  Pairing pairing(report, names, mine, theirs, "", "parameter");
  for (Parameter* p : parameters) {
    pairing.pair(p->name, [&](const std::string& name) -> std::string {
      const TensorSpec& spec = specs.at(name);
      if (spec.shape != p->whole_shape() || spec.dtype != p->value.dtype())
        return fmt::format("{} there, {} here", to_string(spec.shape), to_string(p->whole_shape()));
      read_parameter(file, name, *p, stream);
      taken[p->name] = name;
      return "";
    });
  }
  return taken;
}

// Whether the rows of a table come with the state of an optimizer of its kind; says so if not.
bool comes_with_state(const EmbeddingTable& table, const SavedTable& saved, WarmStartReport& report) {
  if (table.state_width() == 0) return false;
  const std::string mine(word_of(kRowOptimizers, table.optimizer().kind));
  const std::string theirs = saved.description().value("optimizer", "");
  if (saved.state_width() == table.state_width() && theirs == mine) return true;
  report.new_states = saved.state_width() == 0 ? "the checkpoint has no states of rows"
                                               : fmt::format("rows have {} there, {} here", theirs, mine);
  return false;
}

// `new_ids`: the ids here of those there; null: they are the same.
OfferedRows offered_rows(const EmbeddingTable& table, const SavedTable& saved,
                         const std::vector<std::int64_t>* new_ids, const KnownIds& known) {
  OfferedRows rows{.table = table.config().name,
                   .what = known.what,
                   .offered = static_cast<std::int64_t>(saved.size()),
                   .known = std::ssize(known.ids),
                   .frozen = table.config().rate == 0};
  for (std::int64_t id : saved.ids()) {
    if (new_ids != nullptr) id = id < std::ssize(*new_ids) ? (*new_ids)[static_cast<std::size_t>(id)] : -1;
    rows.fitting += std::binary_search(known.ids.begin(), known.ids.end(), id) ? 1 : 0;
  }
  return rows;
}

void take_tables(WarmStartReport& report, const NamePairs& names, const Checkpoint& checkpoint,
                 TableSet& tables, bool with_states, const TextRows& text_rows,
                 const std::map<std::string, KnownIds>& known) {
  std::vector<std::string> mine, theirs;
  std::map<std::string, nlohmann::json> saved;
  for (std::size_t t = 0; t < tables.size(); ++t) mine.push_back(tables[t].config().name);
  for (const auto& table : checkpoint.manifest().tables) {
    theirs.push_back(table.at("name").get<std::string>());
    saved[theirs.back()] = table;
  }
  Pairing pairing(report, names, mine, theirs, "table ", "table");
  for (std::size_t t = 0; t < tables.size(); ++t) {
    EmbeddingTable& table = tables[t];
    pairing.pair(table.config().name, [&](const std::string& name) -> std::string {
      const auto dim = saved.at(name).at("dim").get<std::int64_t>();
      if (dim != table.config().dim) return fmt::format("width {} there, {} here", dim, table.config().dim);
      const SavedTable rows(checkpoint.section("tables/" + name));
      const bool with_state = with_states && comes_with_state(table, rows, report);
      const auto texts = text_rows.find(table.config().name);
      if (texts == text_rows.end()) {
        restore_rows(table, rows, with_state);
      } else {
        restore_rows(table, rows, with_state, texts->second);
      }
      const bool counts = !tables.is_distributed() || table.owners().reports();
      const std::int64_t taken = counts ? table.rows_alive() : 0;
      report.rows += taken;
      report.row_states += with_state ? taken : 0;
      const auto ids = known.find(table.config().name);
      report.tables.push_back(offered_rows(table, rows, texts == text_rows.end() ? nullptr : &texts->second,
                                           ids == known.end() ? KnownIds() : ids->second));
      return "";
    });
  }
}

bool fits_nothing(const OfferedRows& rows) {
  return rows.what.empty() ? rows.offered == 0 : rows.fitting == 0;
}

// "" if the run may begin with what was taken.
std::string refusal_of(const WarmStartReport& report, bool any_parameter, const TableSet& tables) {
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const TableConfig& table = tables[t].config();
    const auto rows = std::find_if(report.tables.begin(), report.tables.end(),
                                   [&](const OfferedRows& offered) { return offered.table == table.name; });
    if (table.rate != 0 || (rows != report.tables.end() && !fits_nothing(*rows))) continue;
    return fmt::format(
        "tables.{0}.frozen = true, and {1} has {2} for table {0}: it would keep its initial values for ever. "
        "Give it rows with the ids of this dataset, or set frozen = false",
        table.name, report.checkpoint.string(), rows == report.tables.end() ? "nothing" : "no row that fits");
  }
  if (any_parameter || !std::all_of(report.tables.begin(), report.tables.end(), fits_nothing)) return "";
  return fmt::format("no row of {} is of an id that this dataset has: are its ids those of another one?",
                     report.checkpoint.string());
}

std::string text_of(const OfferedRows& rows) {
  if (rows.what.empty()) return "";
  const std::int64_t without = rows.known - rows.fitting;
  std::string text =
      fmt::format("\n  table {}: {} rows, of which {} are {} of the dataset; {} {} have no row", rows.table,
                  with_separators(rows.offered), with_separators(rows.fitting), rows.what,
                  with_separators(without), rows.what);
  if (rows.frozen && without > 0)
    text += fmt::format("\nwarning: table {} is frozen: {} {} keep their initial values for ever", rows.table,
                        with_separators(without), rows.what);
  else if (10 * rows.fitting < rows.known)
    text += fmt::format(
        "\nwarning: table {}: fewer than a tenth of the {} have a row: are its ids those of this dataset?",
        rows.table, rows.what);
  return text;
}

}  // namespace

std::map<std::string, KnownIds> known_ids(const RunOptions& options, const Dataset& dataset) {
  const std::vector<std::int64_t> items = all_items(dataset);
  std::map<std::string, KnownIds> known{{"item", {"items", items}}};
  for (const AttributeSection& attribute : options.features.attributes) {
    if (attribute.source() == kOwnId) {
      known[attribute.name] = {"items", items};
      continue;
    }
    IdCounts values;
    for (const std::int64_t value : AttributeOfItems(dataset, attribute.source()).of(items))
      values.add(value);
    known[attribute.name] = {"values", values.sorted().ids};
  }
  for (const ContextualFeature& feature : options.features.context) {
    if (feature.hashed || feature.keys != std::vector<std::string>{"user"}) continue;
    known[feature.name] = {"users", {dataset.user_ids().begin(), dataset.user_ids().end()}};
  }
  return known;
}

WarmStartReport warm_start(const WarmStartSection& section, const Checkpoint& checkpoint,
                           DenseOptimizer& optimizer, TableSet& tables, const TextRows& text_rows,
                           const std::map<std::string, KnownIds>& known) {
  const NameMap names = read_name_map(section.name_map);
  WarmStartReport report;
  report.checkpoint = checkpoint.path();
  report.step = checkpoint.step();
  const NamePairs taken = take_parameters(report, names.parameters, checkpoint, optimizer.parameters(),
                                          optimizer.context().stream);
  if (section.optimizer) take_states(report, taken, checkpoint, optimizer);
  take_tables(report, names.tables, checkpoint, tables, section.optimizer, text_rows, known);
  if (report.matched.empty() && report.renamed.empty()) {
    fail_usage("nothing of {} fits this model, neither a parameter nor a table:\n{}",
               checkpoint.path().string(), to_text(report));
  }
  report.refusal = refusal_of(report, !taken.empty(), tables);
  return report;
}

Path warm_start_checkpoint(const Path& path) {
  namespace fs = std::filesystem;
  if (fs::exists(RunFolder{path}.config())) {
    return fs::canonical(find_checkpoint(RunFolder{path}.checkpoints(), -1));
  }
  if (!fs::exists(path / "manifest.json"))
    fail_usage("--warm-start {}: it is neither a run nor a checkpoint", path.string());
  return fs::canonical(path);
}

std::string to_text(const WarmStartReport& report) {
  std::string text =
      fmt::format("warm start from {} (step {}): {} of its parameters and tables taken ({} rows)",
                  report.checkpoint.string(), report.step, report.matched.size() + report.renamed.size(),
                  with_separators(report.rows));
  if (const std::int64_t states = report.row_states + report.parameter_states; states > 0)
    text += fmt::format("\n  {} of these rows and parameters have the state of their optimizer",
                        with_separators(states));
  if (!report.new_states.empty())
    text += fmt::format("\n  states of optimizers begin at zero: {}", report.new_states);
  const auto list = [&](const char* title, const std::vector<std::string>& names) {
    if (!names.empty()) text += fmt::format("\n  {}: {}", title, fmt::join(names, "; "));
  };
  list("renamed", report.renamed);
  list("of another shape, at the initial value", report.misfitting);
  list("not in the checkpoint, at the initial value", report.initial);
  list("not used", report.unused);
  for (const OfferedRows& rows : report.tables) text += text_of(rows);
  return text;
}

Json to_json(const WarmStartReport& report) {
  Json tables = Json::object();
  for (const OfferedRows& rows : report.tables)
    if (!rows.what.empty())
      tables[rows.table] = {{"rows", rows.offered}, {rows.what, rows.known}, {"with_row", rows.fitting}};
  return {{"checkpoint", report.checkpoint.string()},
          {"step", report.step},
          {"rows", report.rows},
          {"states", report.row_states + report.parameter_states},
          {"matched", report.matched},
          {"renamed", report.renamed},
          {"misfitting", report.misfitting},
          {"initial", report.initial},
          {"unused", report.unused},
          {"tables", tables}};
}

}  // namespace hstu
