#include "hstu/run/resume.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "hstu/base/contains.h"
#include "hstu/base/json_lines.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/run/state.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

Path next_free_folder(const Path& parent) {
  for (int n = 1;; ++n) {
    Path path = parent / std::to_string(n);
    if (!fs::exists(path)) return path;
  }
}

// "" unless the line has a text under the key: a log that was altered may have anything.
std::string text_of(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

bool is_own_line(const Json& line, const Checkpoint& checkpoint) {
  const auto step = line.find("step");
  return text_of(line, "event") == "checkpoint" && step != line.end() && step->is_number_integer() &&
         *step == checkpoint.step() && text_of(line, "reason") == saved_reason(checkpoint);
}

double training_seconds_of(const Json& line, const Path& metrics) {
  const auto seconds = line.find("training_s");
  check(seconds != line.end() && seconds->is_number(),
        "{}: the line of the save of step {} has no number training_s: it was altered. Move the file away to "
        "continue with a new log",
        metrics.string(), line.at("step").dump());
  return seconds->get<double>();
}

// The line of a save precedes the rename of its checkpoint, so only a later line, other than
// checkpoint_failed, proves that the checkpoint existed.
bool has_saved(const Path& metrics) {
  if (!fs::exists(metrics)) return false;
  bool saving = false;
  for (const Json& line : read_json_lines(metrics)) {
    const std::string event = text_of(line, "event");
    if (saving && event != "checkpoint_failed") return true;
    saving = event == "checkpoint";
  }
  return false;
}

// Keys of evaluations that are of the same samples whatever the value.
constexpr std::array<std::string_view, 9> kSameSamples{
    "batch_size", "at_start",  "every_windows", "every_data_fraction", "skip_until_fraction", "target_auc",
    "patience",   "min_delta", "ranking_k"};
// Keys of data that say which samples there are.
constexpr std::array<std::string_view, 4> kOtherSamples{"anchor_stride", "min_history", "pools", "negatives"};

void check_done(const std::error_code& error, const std::string& what) {
  check(!error, "cannot {}: {}", what, error.message());
}

}  // namespace

bool change_evaluations(const std::vector<ConfigDifference>& changed) {
  return std::any_of(changed.begin(), changed.end(), [](const ConfigDifference& difference) {
    const std::vector<std::string> parts = split(difference.key, '.');
    if (parts.size() < 2) return false;
    const std::string name = parts[1].substr(0, parts[1].find('['));
    return (parts[0] == "evaluation" && !contains(kSameSamples, name)) ||
           (parts[0] == "data" && contains(kOtherSamples, name));
  });
}

std::optional<Checkpoint> checkpoint_to_resume(const RunFolder& folder, std::int64_t step) {
  if (step < 0 && !latest_checkpoint(folder.checkpoints())) {
    if (has_saved(folder.metrics())) {
      fail_usage(
          "{} says that checkpoints were saved, but {} contains none: put them back, or start a new run",
          folder.metrics().string(), folder.checkpoints().string());
    }
    print_note("{} was interrupted before its first save: it starts from the beginning\n",
               folder.path.string());
    return std::nullopt;
  }
  return Checkpoint(find_checkpoint(folder.checkpoints(), step));
}

std::vector<ConfigDifference> changed_keys(const RunFolder& folder,
                                           const std::optional<Checkpoint>& checkpoint,
                                           const RunOptions& options,
                                           const std::vector<std::string>& allowed) {
  RunOptions before = checkpoint ? saved_options(*checkpoint) : read_run_options(folder);
  // A run records what "auto" chose; one without a record is from a version that knew the host alone.
  if (before.device == "auto" && options.device == "host") before.device = "host";
  const ConfigFlattener::Values now = config_values(options);
  std::vector<ConfigDifference> changed = differences(config_values(before), now);
  check_differences(changed, allowed, now, (checkpoint ? checkpoint->path() : folder.path).string());
  return changed;
}

void abandon_later(const RunFolder& folder, std::int64_t step) {
  auto entries = list_checkpoints(folder.checkpoints());
  std::erase_if(entries, [&](const CheckpointEntry& entry) { return entry.step <= step; });
  if (entries.empty()) return;
  const Path place = next_free_folder(folder.abandoned());
  std::error_code error;
  fs::create_directories(place, error);
  check_done(error, "create the folder " + place.string());
  if (fs::exists(folder.metrics())) {
    fs::copy_file(folder.metrics(), place / folder.metrics().filename(), error);
    check_done(error, "copy metrics.jsonl to " + place.string());
  }
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    fs::rename(entry->path, place / entry->path.filename(), error);
    check_done(error, fmt::format("move {} to {}", entry->path.string(), place.string()));
  }
  print_note(
      "going back to step {}: {} later checkpoint{} and a copy of the log moved to {}; remove them when "
      "you do not need them\n",
      step, entries.size(), entries.size() == 1 ? "" : "s", place.string());
}

LogRecord read_log(const Path& metrics, const Checkpoint& checkpoint) {
  LogRecord record;
  if (!fs::exists(metrics)) return record;
  for (const Json& line : read_json_lines(metrics)) {
    if (is_own_line(line, checkpoint)) {
      record.begun = true;
      record.training_seconds = training_seconds_of(line, metrics);
    }
    record.ended = text_of(line, "event") == "end" && text_of(line, "reason") != "interrupted";
  }
  check(record.begun,
        "{} has no line of the save of step {} ({}): it was altered, or belongs to another run. Move it away "
        "to "
        "continue with a new log",
        metrics.string(), checkpoint.step(), saved_reason(checkpoint));
  return record;
}

void rewind_log(const Path& metrics, const Checkpoint& checkpoint) {
  if (!fs::exists(metrics)) return;
  cut_lines_behind(metrics, [&](const Json& line) { return is_own_line(line, checkpoint); });
}

}  // namespace hstu
