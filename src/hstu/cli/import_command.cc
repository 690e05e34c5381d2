#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/cli/commands.h"
#include "hstu/run/table_files.h"

namespace hstu {
namespace {

struct ImportWords {
  std::vector<std::string> exports, rows, ids;
  std::string dense, output;
};

// "item=vectors.npy" -> {"item", "vectors.npy"}
std::map<std::string, std::string> by_table(const std::vector<std::string>& words, const char* option) {
  std::map<std::string, std::string> files;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == word.size())
      fail_usage("{} {}: expected TABLE=FILE, such as item=vectors.npy", option, word);
    if (const std::string table = word.substr(0, equals); !is_plain_name(table))
      fail_usage("{} {}: expected as TABLE {}, found \"{}\"", option, word, kPlainName, table);
    if (!files.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
      fail_usage("{}: table {} occurs twice", option, word.substr(0, equals));
  }
  return files;
}

Json run_import(const ImportWords& words) {
  const auto rows = by_table(words.rows, "--rows"), ids = by_table(words.ids, "--ids");
  const bool joins = rows.empty() && ids.empty() && words.dense.empty();
  if (words.exports.empty() == joins)
    fail_usage("expected the folders of exports, or --rows and --ids for files of NumPy, or --dense");
  if (joins) return join_exports({words.exports.begin(), words.exports.end()}, words.output);
  std::vector<NpyRows> tables;
  for (const auto& [table, file] : rows) {
    if (!ids.contains(table))
      fail_usage("--rows {}={}: expected --ids {}=FILE beside it", table, file, table);
    tables.push_back({table, file, ids.at(table)});
  }
  for (const auto& [table, file] : ids)
    if (!rows.contains(table))
      fail_usage("--ids {}={}: expected --rows {}=FILE beside it", table, file, table);
  return import_npy(tables, words.output, words.dense);
}

}  // namespace

void add_import_command(CLI::App& app) {
  auto words = std::make_shared<ImportWords>();
  CLI::App* const command =
      app.add_subcommand("import", "Join exports of table rows, or read rows and parameters of others");
  command->add_option("EXPORT", words->exports,
                      "folders of hstu export tables: one with every row, then the changes in order");
  command->add_option("--rows", words->rows, "TABLE=FILE.npy: rows (n, D), float32 or float64");
  command->add_option(
      "--ids", words->ids,
      "TABLE=FILE: their ids (n), .npy of int64 or int32, or a text file with a name on each line, where "
      "the log names users or items by texts");
  command->add_option("--dense", words->dense,
                      "dense parameters in F32 under the names of docs/model.md, a safetensors file");
  command->add_option("--output", words->output, "new folder")->required()->type_name("DIR");
  command->footer(
      "The output has every row, as hstu export tables writes them. A run can begin with them:\n"
      "hstu train CONFIG --warm-start DIR. An export that is missing or out of order is an error.\n"
      "Prints one JSON object. docs/tables.md describes the files.\n"
      "Examples:\n"
      "  hstu import full changes1 changes2 --output rows\n"
      "  hstu import --rows item=vectors.npy --ids item=ids.npy --output rows");
  command->callback([words] { fmt::print("{}\n", run_import(*words).dump(2)); });
}

}  // namespace hstu
