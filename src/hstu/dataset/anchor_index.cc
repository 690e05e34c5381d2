#include "hstu/dataset/anchor_index.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/npy.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/dataset/anchor_builder.h"
#include "hstu/dataset/anchor_manifest.h"

namespace hstu {
namespace {

using Positions = NpyColumn<std::int64_t>;

// The positions file of a list, written in any order.
class ListFile {
 public:
  ListFile(const Path& path, std::int64_t count)
      : header_(npy_header(npy_type<std::int64_t>(), std::span(&count, 1))),
        file_(path, header_.size() + static_cast<std::uint64_t>(count) * sizeof(std::int64_t)) {
    file_.write_at(0, header_.data(), header_.size());
  }
  PutPositions put() {
    return [this](std::int64_t offset, std::span<const std::int64_t> positions) {
      file_.write_at(header_.size() + static_cast<std::uint64_t>(offset) * sizeof(std::int64_t),
                     positions.data(), positions.size_bytes());
    };
  }
  void close() { file_.close(); }

 private:
  std::string header_;
  PlacedFile file_;
};

void write_index(const Path& folder, const std::string& dataset, const AnchorRule& rule,
                 const AnchorBuilder& builder) {
  const AnchorCounts counts = builder.count();
  StagedFolder staged(folder);
  const Path& path = staged.path();
  write_npy(path / kTrainingUsers.offsets, counts.training_users);
  write_npy(path / kHeldOutUsers.offsets, counts.held_out_users);
  ListFile training(path / kTrainingUsers.positions, counts.training_users.back());
  ListFile held_out(path / kHeldOutUsers.positions, counts.held_out_users.back());
  builder.place(counts, training.put(), held_out.put());
  training.close();
  held_out.close();
  AnchorManifest manifest{.dataset = dataset,
                          .rule = rule,
                          .time_min = counts.time_min,
                          .time_max = counts.time_max,
                          .first_window = counts.first_window,
                          .checksums = {}};
  for (const ListFiles& files : {kTrainingUsers, kHeldOutUsers}) {
    for (const char* file : {files.positions, files.offsets}) {
      manifest.checksums[file] = file_checksum(path / file);
    }
  }
  write_file(path / kManifestFile, anchor_manifest_to_json(manifest));
  staged.commit();
}

// The times of each window, as many as `windows`.
std::vector<TimeRange> window_times(const AnchorRule& rule, std::int64_t first, std::int64_t time_max,
                                    std::int64_t windows) {
  std::vector<TimeRange> times;
  for (std::int64_t w = 0; w < windows; ++w) {
    const std::int64_t begin = first + w * rule.window_seconds;
    times.push_back({begin, w + 1 < windows ? begin + rule.window_seconds - 1 : time_max});
  }
  return times;
}

AnchorIndex build_in_memory(const AnchorRule& rule, const AnchorBuilder& builder) {
  const AnchorCounts counts = builder.count();
  std::vector<std::int64_t> training(static_cast<std::size_t>(counts.training_users.back()));
  std::vector<std::int64_t> held_out(static_cast<std::size_t>(counts.held_out_users.back()));
  const auto put = [](std::vector<std::int64_t>& list) -> PutPositions {
    return [&list](std::int64_t offset, std::span<const std::int64_t> positions) {
      std::copy(positions.begin(), positions.end(), list.begin() + offset);
    };
  };
  builder.place(counts, put(training), put(held_out));
  const std::int64_t windows = std::ssize(counts.training_users) - 1;
  return {.rule = rule,
          .time_min = counts.time_min,
          .time_max = counts.time_max,
          .grid = counts.first_window,
          .training_users = AnchorList(std::move(training), counts.training_users),
          .held_out_users = AnchorList(std::move(held_out), counts.held_out_users),
          .times = window_times(rule, counts.first_window, counts.time_max, windows),
          .segment_windows = {windows}};
}

AnchorList open_list(const Path& folder, const ListFiles& files, const Segment& segment) {
  const Positions offsets(folder / files.offsets);
  const auto positions = std::make_shared<const Positions>(folder / files.positions);
  const auto borders = offsets.values();
  check(!borders.empty() && borders.front() == 0 && borders.back() == positions->size() &&
            std::is_sorted(borders.begin(), borders.end()),
        "{}: expected ascending offsets from 0 to {}, the positions in {}; remove {}, and the next run "
        "builds it again",
        (folder / files.offsets).string(), positions->size(), files.positions, folder.string());
  const bool inside = positions->size() == 0 || (positions->values().front() >= segment.first() &&
                                                 positions->values().back() < segment.end());
  check(inside, "{}: expected positions in [{}, {}); remove {}, and the next run builds it again",
        (folder / files.positions).string(), segment.first(), segment.end(), folder.string());
  return AnchorList(positions->values(), borders, positions);
}

// The lock of a dataset's index folder; null, with a note, if no files can be created in the folder.
std::unique_ptr<FileLock> lock_folder(const Path& folder, const AnchorRule& rule) {
  try {
    std::filesystem::create_directories(folder);
    return std::make_unique<FileLock>(folder / ".lock");
  } catch (const std::exception& error) {
    print_note(
        "note: the index of anchors {} cannot be stored in the dataset's folder ({}), so it is built in "
        "memory at every start, 8 bytes per anchor; to avoid this, run hstu prepare index on a machine that "
        "can write to the folder\n",
        rule.name(), error.what());
    return nullptr;
  }
}

// Nobody writes here while the lock is held: what is unfinished, of any rule, a killed process left.
void remove_unfinished_indices(const Path& folder) {
  std::vector<Path> unfinished;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".partial") unfinished.push_back(entry.path());
  for (const Path& path : unfinished) std::filesystem::remove_all(path);
}

void check_rule(const AnchorRule& rule) {
  if (rule.min_history < 0) fail_usage("min_history: expected at least 0, found {}", rule.min_history);
  if (rule.window_seconds < 0) {
    fail_usage("window_seconds: expected at least 0 (0 is one window), found {}", rule.window_seconds);
  }
  if (!(rule.users.train_fraction >= 0 && rule.users.train_fraction <= 1)) {
    fail_usage("train_user_fraction: expected a value in [0, 1], found {}", rule.users.train_fraction);
  }
}

AnchorRule without_idle_salt(AnchorRule rule) {
  if (!rule.users.any_held_out()) rule.users.salt = 0;
  return rule;
}

// The stored index of a segment.
std::optional<AnchorIndex> read_segment_index(const Dataset& dataset, std::size_t number,
                                              const AnchorRule& rule) {
  const Segment& segment = dataset.segments()[number];
  const std::string& id = dataset.folders()[number].manifest.id;
  const Path folder = segment.folder() / kAnchorFolder / rule.name();
  if (!std::filesystem::exists(folder)) return std::nullopt;
  const AnchorManifest manifest = read_anchor_manifest(folder);
  check(
      manifest.dataset == id,
      "{}: dataset: expected {} as in the dataset's {}, found {}: the index belongs to other events; remove "
      "{}, and the next run builds it again",
      (folder / kManifestFile).string(), id, kManifestFile, manifest.dataset, folder.string());
  check(manifest.rule == rule, "{}: expected the index {}, found {}: the folder was renamed",
        (folder / kManifestFile).string(), rule.name(), manifest.rule.name());
  const std::int64_t windows =
      rule.window_seconds == 0 ? 1 : (manifest.time_max - manifest.first_window) / rule.window_seconds + 1;
  AnchorIndex index{.rule = rule,
                    .time_min = manifest.time_min,
                    .time_max = manifest.time_max,
                    .grid = manifest.first_window,
                    .training_users = open_list(folder, kTrainingUsers, segment),
                    .held_out_users = open_list(folder, kHeldOutUsers, segment),
                    .times = {},
                    .segment_windows = {windows}};
  check(index.windows() == windows && index.held_out_users.windows() == windows,
        "{}: expected {} windows, found {} and {}; remove {}, and the next run builds it again",
        folder.string(), windows, index.windows(), index.held_out_users.windows(), folder.string());
  index.times = window_times(rule, manifest.first_window, manifest.time_max, windows);
  return index;
}

// The same; builds and stores it if there is none.
AnchorIndex open_segment_index(const Dataset& dataset, std::size_t number, const AnchorRule& rule,
                               std::optional<std::int64_t> grid) {
  if (auto index = read_segment_index(dataset, number, rule)) return *std::move(index);
  const Segment& segment = dataset.segments()[number];
  const AnchorBuilder builder(dataset, number, rule, grid);
  const Path folder = segment.folder() / kAnchorFolder;
  const std::unique_ptr<FileLock> lock = lock_folder(folder, rule);
  if (!lock) return build_in_memory(rule, builder);
  if (!lock->held()) {
    print_note("note: another process is building an index of {}; waiting for it\n",
               segment.folder().string());
    lock->wait();
  }
  auto index = read_segment_index(dataset, number, rule);  // by the process that held the lock
  if (index) return *std::move(index);
  remove_unfinished_indices(folder);
  print_note("note: building the index of anchors {} (once): two passes over {} events\n",
             (folder / rule.name()).string(), with_separators(segment.end() - segment.first()));
  write_index(folder / rule.name(), dataset.folders()[number].manifest.id, rule, builder);
  index = read_segment_index(dataset, number, rule);
  require(index.has_value(), "the index {} is missing right after it was written", rule.name());
  return *std::move(index);
}

// Appends the windows of a later segment.
void append(AnchorIndex& index, const AnchorIndex& later) {
  if (later.count() > 0) {
    index.time_min = std::min(index.time_min, later.time_min);
    index.time_max = std::max(index.time_max, later.time_max);
  }
  for (std::int64_t w = 0; w < later.windows(); ++w) {
    index.training_users.append(later.training_users, w);
    index.held_out_users.append(later.held_out_users, w);
  }
  index.times.insert(index.times.end(), later.times.begin(), later.times.end());
  index.segment_windows.push_back(later.windows());
}

// Names of the indices in a folder, ascending.
std::vector<std::string> stored_names(const Path& folder) {
  std::vector<std::string> names;
  if (!std::filesystem::is_directory(folder)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().extension() != ".partial") {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string AnchorRule::name() const {
  std::string text = fmt::format("m{}_w{}", min_history, window_seconds);
  if (users.any_held_out()) text += fmt::format("_u{}_s{}", users.train_fraction, users.salt);
  return text;
}

std::optional<AnchorIndex> read_anchor_index(const Dataset& dataset, const AnchorRule& wanted) {
  const AnchorRule rule = without_idle_salt(wanted);
  auto index = read_segment_index(dataset, 0, rule);
  for (std::size_t s = 1; index && s < dataset.segments().size(); ++s) {
    const auto later = read_segment_index(dataset, s, rule);
    if (!later) return std::nullopt;
    append(*index, *later);
  }
  return index;
}

AnchorIndex open_anchor_index(const Dataset& dataset, const AnchorRule& rule) {
  return open_anchor_index(dataset, rule, dataset.segments().size());
}

AnchorIndex open_anchor_index(const Dataset& dataset, const AnchorRule& wanted, std::size_t segments) {
  check_rule(wanted);
  const AnchorRule rule = without_idle_salt(wanted);
  AnchorIndex index = open_segment_index(dataset, 0, rule, std::nullopt);
  for (std::size_t s = 1; s < segments; ++s) append(index, open_segment_index(dataset, s, rule, index.grid));
  return index;
}

std::vector<AnchorRule> stored_anchor_rules(const Dataset& dataset) {
  const Path folder = dataset.segments().front().folder() / kAnchorFolder;
  std::vector<AnchorRule> rules;
  for (const std::string& name : stored_names(folder))
    rules.push_back(read_anchor_manifest(folder / name).rule);
  return rules;
}

std::vector<std::string> verify_anchor_indices(const Dataset& dataset, std::size_t number) {
  const Path folder = dataset.segments()[number].folder() / kAnchorFolder;
  std::vector<std::string> names = stored_names(folder);
  for (const std::string& name : names) {
    const AnchorManifest manifest = read_anchor_manifest(folder / name);
    check(manifest.rule.name() == name, "{}: expected the index {}, found {}: the folder was renamed",
          (folder / name / kManifestFile).string(), name, manifest.rule.name());
    read_segment_index(dataset, number, manifest.rule);
    for (const auto& [file, checksum] : manifest.checksums) {
      const Path path = folder / name / file;
      check(file_checksum(path) == checksum,
            "{}: its content does not match the checksum in {}; remove {}, and the next run builds it again",
            path.string(), kManifestFile, (folder / name).string());
    }
  }
  return names;
}

}  // namespace hstu
