#include "hstu/events/verify_dataset.h"

#include <algorithm>

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

std::int64_t count_items(const MappedColumn& item) {
  constexpr std::int64_t kBlock = 1 << 16, kMemory = std::int64_t{256} << 20;
  const Path spill = std::filesystem::temp_directory_path() / fmt::format("hstu-verify-{}", ::getpid());
  DistinctCounter counter(spill, kMemory);
  std::vector<std::int64_t> block;
  for (std::int64_t begin = 0; begin < item.size(); begin += kBlock) {
    block.clear();
    for (std::int64_t p = begin; p < std::min(begin + kBlock, item.size()); ++p) block.push_back(item[p]);
    IntegerColumn ids;
    ids.append(block);
    counter.add(ids);
  }
  return counter.count();
}

// Computes the counts from the columns and checks the order of time in the same pass.
void check_events(const Dataset& dataset) {
  const Manifest& manifest = dataset.manifest();
  EventCounts counts{
      .events = dataset.events(), .users = dataset.users(), .items = 0, .rankable = 0, .positives = 0};
  TimeRange time{.min = dataset.time()[0], .max = dataset.time()[0]};
  const int positive = kRankableBit | manifest.label_bit();
  Progress progress("checking events", dataset.events(), "events");
  const auto offsets = dataset.user_offsets();
  for (std::size_t u = 0; u + 1 < offsets.size(); ++u) {
    for (std::int64_t p = offsets[u]; p < offsets[u + 1]; ++p) {
      const std::int64_t now = dataset.time()[p];
      check(p == offsets[u] || now >= dataset.time()[p - 1],
            "the events of user {} are not in the order of time (position {})", dataset.user_ids()[u], p);
      time = {.min = std::min(time.min, now), .max = std::max(time.max, now)};
      const int action = dataset.action()[static_cast<std::size_t>(p)];
      counts.rankable += (action & kRankableBit) != 0 ? 1 : 0;
      counts.positives += (action & positive) == positive ? 1 : 0;
    }
    progress.advance_to(offsets[u + 1]);
  }
  counts.items = count_items(dataset.item());
  check(counts == manifest.counts,
        "expected {} items, {} rankable events and {} positives, found {}, {} and {}", manifest.counts.items,
        manifest.counts.rankable, manifest.counts.positives, counts.items, counts.rankable, counts.positives);
  check(time == manifest.time, "expected times from {} to {}, found {} to {}", manifest.time.min,
        manifest.time.max, time.min, time.max);
}

}  // namespace

std::vector<FileVerdict> verify_dataset(const Path& folder) {
  std::vector<FileVerdict> verdicts;
  Manifest manifest;
  verdicts.push_back(
      verdict_of(kManifestFile, "fields, dataset id", [&] { manifest = read_manifest(folder); }));
  if (verdicts.back().status != Status::kOk) return verdicts;
  for (const auto& [file, column] : manifest.columns) {
    if (!std::filesystem::exists(folder / file)) {
      verdicts.push_back({.file = file, .status = Status::kMissing, .remark = "the manifest lists it"});
      continue;
    }
    verdicts.push_back(verdict_of(file, "type, length, checksum",
                                  [&, &c = column, &f = file] { check_column(folder / f, c); }));
  }
  const bool whole = std::all_of(verdicts.begin(), verdicts.end(),
                                 [](const FileVerdict& v) { return v.status == Status::kOk; });
  if (!whole) return verdicts;
  verdicts.push_back(verdict_of("events", "users ascend, times ascend inside users, counts",
                                [&] { check_events(Dataset(folder)); }));
  if (std::filesystem::exists(folder / kAnchorFolder)) {
    verdicts.push_back(verdict_of(kAnchorFolder, "checksums of the stored indices",
                                  [&] { verify_anchor_indices(Dataset(folder)); }));
  }
  return verdicts;
}

}  // namespace hstu
