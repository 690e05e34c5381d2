#include "hstu/prepare/suggestion.h"

#include <algorithm>
#include <cstdio>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/columns/file_columns.h"
#include "hstu/columns/file_format.h"
#include "hstu/suggestion/schema_suggestion.h"

namespace hstu {
namespace {

// Also those in folders KEY=VALUE, which Hive and Spark write.
void add_tables_in(const Path& folder, std::vector<Path>& files) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Path& path = entry.path();
    if (!entry.is_directory()) {
      if (ending_of(path) == ".parquet" || looks_like_csv(path)) files.push_back(path);
    } else if (path.filename().string().find('=') != std::string::npos) {
      add_tables_in(path, files);
    }
  }
}

// The log of a folder: its largest file, and those with the same columns. Others are mappings.
std::vector<Path> event_files_in(const Path& folder) {
  std::vector<Path> files;
  add_tables_in(folder, files);
  if (files.empty())
    fail_usage("--suggest: {} contains no *.parquet and no *.csv: name the files", folder.string());
  std::sort(files.begin(), files.end());
  const auto size = [](const Path& file) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(file, error);
    return error ? 0 : bytes;
  };
  const Path largest = *std::max_element(files.begin(), files.end(),
                                         [&](const Path& a, const Path& b) { return size(a) < size(b); });
  const std::vector<FileColumn> columns = list_columns(largest);
  std::erase_if(files, [&](const Path& file) {
    const bool other = list_columns(file) != columns;
    if (other) print_note("note: {} has other columns than {}: left out\n", file.string(), largest.string());
    return other;
  });
  return files;
}

std::vector<Path> event_files(const std::vector<Path>& inputs) {
  std::vector<Path> files;
  for (const Path& input : inputs) {
    if (!std::filesystem::exists(input)) fail_usage("--suggest: {} does not exist", input.string());
    const bool folder = std::filesystem::is_directory(input);
    const std::vector<Path> found = folder ? event_files_in(input) : std::vector<Path>{input};
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace

void write_suggestion(const std::vector<Path>& inputs, const Path& output) {
  if (!output.empty() && std::filesystem::exists(output))
    fail_usage("--output: {} exists already, and nothing is overwritten", output.string());
  const std::string text = suggest_schema(event_files(inputs));
  if (output.empty()) {
    fmt::print("{}", text);
    return;
  }
  write_file(output, text);
  print_note("{} is a guess: read and correct it, then run the next step, which its first lines contain\n",
             output.string());
}

}  // namespace hstu
