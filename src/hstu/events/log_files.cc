#include "hstu/events/log_files.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "hstu/base/error.h"
#include "hstu/base/glob.h"
#include "hstu/base/progress.h"

namespace hstu {
namespace {

// A file that is read twice doubles its events.
void check_once(const Schema& schema, const std::vector<Path>& files) {
  std::map<Path, Path> seen;
  for (const Path& file : files) {
    std::error_code error;
    const Path target = std::filesystem::canonical(file, error);
    if (error) continue;  // opening it reports the reason
    const auto [known, added] = seen.emplace(target, file);
    if (!added) {
      fail_usage("files = [\"{}\"]: {} would be read twice (the second time as {}): change the patterns",
                 fmt::join(schema.files, "\", \""), known->second.string(), file.string());
    }
  }
}

std::vector<Path> matching_files(const Schema& schema, const Path& input) {
  std::vector<Path> files;
  for (const std::string& pattern : schema.files) {
    const std::vector<Path> found = glob_files(input, pattern);
    if (found.empty()) fail_usage("{}: the file does not exist", (input / pattern).string());
    files.insert(files.end(), found.begin(), found.end());
  }
  check_once(schema, files);
  return files;
}

// A column's range as a batch of two rows: the smallest value, then the largest.
RawBatch range_batch(const Path& file, const RawColumn& range) {
  RawBatch batch;
  batch.file = file.string();
  batch.rows = 2;
  batch.columns = {range};
  return batch;
}

// Combines the statistics of the pieces, in the order of the log.
class Survey {
 public:
  Survey(const EventExtractor& extractor, LogFiles& log) : extractor_(extractor), log_(log) {}

  void add(const Path& file, const ColumnSource& source, std::size_t group) {
    const auto position = [&](const std::string& column) {
      const auto& columns = extractor_.columns();
      return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), column) - columns.begin());
    };
    const auto users = source.range(position(extractor_.schema().user), group);
    const bool timed = extractor_.schema().times == Times::kSeconds;
    const auto times = timed ? source.range(position(extractor_.schema().time), group) : std::nullopt;
    if (users && users->kind == RawColumn::Kind::kInteger) {
      if (users->integers[0] < largest_user_) log_.unordered = true;
      largest_user_ = std::max(largest_user_, users->integers[1]);
    }
    known_ = known_ && times.has_value() && times->kind != RawColumn::Kind::kText;  // in the order of texts
    if (!known_) return;
    const RawBatch batch = range_batch(file, *times);
    last_time_ = std::max(last_time_, extractor_.seconds(batch, batch.columns[0]).back());
  }

  void finish() const {
    if (known_ && !log_.pieces.empty()) log_.last_time = last_time_;
  }

 private:
  const EventExtractor& extractor_;
  LogFiles& log_;
  bool known_ = true;
  std::int64_t largest_user_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t last_time_ = std::numeric_limits<std::int64_t>::min();
};

// Ids, contexts and attributes are integers in all files or texts in all files: a text is never the same
// value as an integer. `known`: of each column the first file that says a type.
void compare_types(const EventExtractor& extractor, LogFiles& log, std::size_t file,
                   const ColumnSource& source, std::map<std::string, std::size_t>& known) {
  const Schema& schema = extractor.schema();
  std::vector<std::string> names = {schema.user, schema.item};
  for (const ContextRule& rule : schema.context) names.push_back(rule.column);
  for (const AttributeRule& rule : schema.attributes) {
    if (rule.file.empty()) names.push_back(rule.value_column);
  }
  const std::vector<std::string>& columns = extractor.columns();
  for (const std::string& name : names) {
    const auto position = std::find(columns.begin(), columns.end(), name) - columns.begin();
    if (source.is_untyped(static_cast<std::size_t>(position))) continue;
    const bool text = source.is_text(static_cast<std::size_t>(position));
    const auto [first, added] = known.emplace(name, file);
    if (added && text) log.texts.insert(name);
    if (text != log.texts.contains(name)) {
      fail_usage(
          "{}: column \"{}\": found {}, but {} in {}: write the files in one type; CSV has texts unless the "
          "schema lists the column in integers",
          log.files[file].string(), name, text ? "texts" : "integers", text ? "integers" : "texts",
          log.files[first->second].string());
    }
  }
}

}  // namespace

LogFiles find_log(const EventExtractor& extractor, const Path& input) {
  LogFiles log;
  log.files = matching_files(extractor.schema(), input);
  Survey survey(extractor, log);
  std::map<std::string, std::size_t> known;
  for (std::size_t file = 0; file < log.files.size(); ++file) {
    const auto source = open_columns(log.files[file], extractor.columns(), extractor.options());
    compare_types(extractor, log, file, *source, known);
    const std::vector<std::int64_t> groups = source->groups();
    for (std::size_t group = 0; group < groups.size(); ++group) {
      log.pieces.push_back({.file = file, .group = group});
      log.rows += groups[group];
      // Empty row groups have no range.
      if (groups[group] > 0 || source->total_rows() == 0) survey.add(log.files[file], *source, group);
    }
  }
  if (!extractor.filter().active()) survey.finish();  // the last event may be left out
  return log;
}

std::int64_t find_last_time(const LogFiles& log, const EventExtractor& extractor) {
  std::vector<std::string> columns = extractor.filter().columns();
  std::erase(columns, extractor.schema().time);
  columns.insert(columns.begin(), extractor.schema().time);
  ReadOptions options = extractor.options();
  options.threads = true;
  Progress progress("looking for the last event", log.rows, "events");
  std::int64_t last = std::numeric_limits<std::int64_t>::min(), rows = 0;
  RawBatch batch;
  for (const Path& file : log.files) {
    const auto source = open_columns(file, columns, options);
    while (source->next(batch)) {
      rows += batch.rows;
      extractor.filter().apply(batch);
      for (const std::int64_t time : extractor.seconds(batch, batch.columns[0])) last = std::max(last, time);
      progress.advance_to(rows);
    }
  }
  progress.finish();
  return last;
}

}  // namespace hstu
