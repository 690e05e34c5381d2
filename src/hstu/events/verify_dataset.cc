#include "hstu/events/verify_dataset.h"

#include <algorithm>
#include <cmath>

#include <unistd.h>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/base/progress.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/distinct_counter.h"

namespace hstu {
namespace {

using Status = FileVerdict::Status;

void check_column(const Path& path, const ColumnInfo& column) {
  const MappedFile file(path);
  check(static_cast<std::int64_t>(file.bytes().size()) == column.bytes, "expected {} bytes, found {}",
        column.bytes, file.bytes().size());
  const NpyHeader header = parse_npy_header(file.bytes(), path);
  check(header.type == column.type && header.count() == column.count,
        "expected {} elements of {}, found {} of {}", column.count, column.type, header.count(), header.type);
  check(checksum(file.bytes().subspan(header.data_offset)) == column.checksum,
        "the elements do not match their checksum");
}

std::int64_t count_items(const MappedColumn& item, const Segment& segment) {
  constexpr std::int64_t kBlock = 1 << 16, kMemory = std::int64_t{256} << 20;
  const Path spill = std::filesystem::temp_directory_path() / fmt::format("hstu-verify-{}", ::getpid());
  DistinctCounter counter(spill, kMemory);
  std::vector<std::int64_t> block;
  for (std::int64_t begin = segment.first(); begin < segment.end(); begin += kBlock) {
    block.clear();
    for (std::int64_t p = begin; p < std::min(begin + kBlock, segment.end()); ++p) block.push_back(item[p]);
    IntegerColumn ids;
    ids.append(block);
    counter.add(ids);
  }
  return counter.count();
}

// Computes the counts of a segment from its columns and checks the order of time in the same pass.
void check_events(const Dataset& dataset, std::size_t number) {
  const Manifest& manifest = dataset.folders()[number].manifest;
  const Segment& segment = dataset.segments()[number];
  EventCounts counts{.events = segment.end() - segment.first(),
                     .users = segment.users(),
                     .items = 0,
                     .rankable = 0,
                     .positives = 0};
  const std::int64_t first_time = dataset.time()[segment.first()];
  TimeRange time{.min = first_time, .max = first_time};
  const int positive = kRankableBit | manifest.label_bit();
  Progress progress("checking events", counts.events, "events");
  for (std::int64_t u = 0; u < segment.users(); ++u) {
    const PositionRange events = segment.events_of(u);
    for (std::int64_t p = events.begin; p < events.end; ++p) {
      const std::int64_t now = dataset.time()[p];
      check(p == events.begin || now >= dataset.time()[p - 1],
            "the events of user {} are not in the order of time (position {})",
            segment.user_ids()[static_cast<std::size_t>(u)], p);
      time = {.min = std::min(time.min, now), .max = std::max(time.max, now)};
      const int action = dataset.action()[static_cast<std::size_t>(p)];
      counts.rankable += (action & kRankableBit) != 0 ? 1 : 0;
      counts.positives += (action & positive) == positive ? 1 : 0;
    }
    progress.advance_to(events.end - segment.first());
    for (std::int64_t p = events.begin; dataset.has_weights() && p < events.end; ++p)
      check(dataset.weight(p) >= 0 && std::isfinite(dataset.weight(p)),
            "{}: expected a finite weight of at least 0, found {} (position {})", kWeightFile,
            dataset.weight(p), p);
  }
  counts.items = count_items(dataset.item(), segment);
  check(counts == manifest.counts,
        "expected {} items, {} rankable events and {} positives, found {}, {} and {}", manifest.counts.items,
        manifest.counts.rankable, manifest.counts.positives, counts.items, counts.rankable, counts.positives);
  check(time == manifest.time, "expected times from {} to {}, found {} to {}", manifest.time.min,
        manifest.time.max, time.min, time.max);
}

// The files of one folder; `prefix` is before their names. Whether the folder can be opened.
bool verify_folder(const SegmentFolder& segment, const std::string& prefix,
                   std::vector<FileVerdict>& verdicts) {
  bool whole = true;
  for (const auto& [file, column] : segment.manifest.columns) {
    const Path path = segment.folder / file;
    verdicts.push_back(
        std::filesystem::exists(path)
            ? verdict_of(prefix + file, "type, length, checksum", [&, &c = column] { check_column(path, c); })
            : FileVerdict{
                  .file = prefix + file, .status = Status::kMissing, .remark = "the manifest lists it"});
    whole = whole && verdicts.back().status == Status::kOk;
  }
  return whole;
}

}  // namespace

std::vector<FileVerdict> verify_dataset(const Path& folder) {
  std::vector<FileVerdict> verdicts;
  std::vector<SegmentFolder> segments;
  verdicts.push_back(
      verdict_of(kManifestFile, "fields, dataset id", [&] { segments = read_segments(folder); }));
  if (verdicts.back().status != Status::kOk) return verdicts;
  std::vector<std::string> prefixes;
  bool whole = true;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    prefixes.push_back(s == 0 ? "" : segments[s].folder.lexically_relative(folder).string() + "/");
    whole = verify_folder(segments[s], prefixes.back(), verdicts) && whole;
  }
  if (!whole) return verdicts;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    verdicts.push_back(verdict_of(prefixes[s] + "events", "users ascend, times ascend inside users, counts",
                                  [&] { check_events(Dataset(folder), s); }));
    if (std::filesystem::exists(segments[s].folder / kAnchorFolder)) {
      verdicts.push_back(verdict_of(prefixes[s] + kAnchorFolder, "checksums of the stored indices",
                                    [&] { verify_anchor_indices(Dataset(folder), s); }));
    }
  }
  return verdicts;
}

}  // namespace hstu
