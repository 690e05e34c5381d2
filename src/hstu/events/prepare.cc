#include "hstu/events/prepare.h"

#include <string_view>
#include <utility>
#include <vector>

#include <glob.h>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/dataset/time_split.h"
#include "hstu/dataset/writer.h"
#include "hstu/events/column_source.h"
#include "hstu/events/event_extractor.h"
#include "hstu/events/item_attributes.h"

namespace hstu {
namespace {

// The folder's own name may hold characters that are special in patterns.
std::string escaped(const Path& folder) {
  std::string text;
  for (const char c : folder.string()) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

// The files that the schema's patterns name: patterns in their order, files of one pattern in byte order.
std::vector<Path> find_files(const Schema& schema, const Path& input) {
  std::vector<Path> files;
  for (const std::string& pattern : schema.files) {
    glob_t found{};
    const bool any = ::glob((escaped(input) + "/" + pattern).c_str(), 0, nullptr, &found) == 0;
    for (std::size_t i = 0; any && i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
    ::globfree(&found);
    if (!any) fail_usage("{}: there is no such file", (input / pattern).string());
  }
  return files;
}

// Opens every file once, so that a missing column shows before hours of reading. Returns the rows in all, 0
// when they are not known.
std::int64_t check_files(const std::vector<Path>& files, const std::vector<std::string>& columns) {
  std::int64_t rows = 0;
  for (const Path& file : files) rows += open_columns(file, columns)->total_rows();
  return rows;
}

EventTable read_log(const std::vector<Path>& files, std::int64_t total, const EventExtractor& extractor,
                    std::vector<ItemAttribute>& attributes) {
  EventTable table = extractor.empty_table();
  table.reserve(total);
  Progress progress("reading events", total, "events");
  RawBatch batch;
  for (const Path& file : files) {
    const auto source = open_columns(file, extractor.columns());
    while (source->next(batch)) {
      extractor.extract(batch, table, attributes);
      progress.advance_to(table.size());
    }
  }
  progress.finish();
  return table;
}

}  // namespace

Manifest prepare(const Schema& schema, const Path& input, const Path& output) {
  validate(schema, schema.name);
  StagedFolder staged(output);
  const EventExtractor extractor(schema);
  const std::vector<Path> files = find_files(schema, input);
  const std::int64_t total = check_files(files, extractor.columns());
  std::vector<ItemAttribute> attributes = read_mappings(schema, input);
  EventTable events = read_log(files, total, extractor, attributes);
  check(events.size() > 0, "{}: the log holds no events ({})", input.string(), fmt::join(schema.files, ", "));
  equalize_lengths(attributes);

  Manifest description = describe(schema);
  if (schema.split && schema.split->test_days > 0) {
    SplitEvents split = split_events(std::move(events), *schema.split);
    events = std::move(split.train);
    description.split = split.boundaries;
    description.test_events = count_events(split.test, description.label_bit());
  }
  Manifest manifest = write_dataset(staged.path(), std::move(description), events, attributes);
  staged.commit();
  return manifest;
}

}  // namespace hstu
