#include "hstu/events/prepare.h"

#include <cstdio>
#include <functional>
#include <memory>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/dataset/writer.h"
#include "hstu/events/event_extractor.h"
#include "hstu/events/log_stream.h"

namespace hstu {
namespace {

// Says early that the disk will hardly do.
void note_space(const Path& folder, std::int64_t needed) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error || static_cast<std::uintmax_t>(needed) <= space.available) return;
  fmt::print(stderr, "note: about {} will be needed in {}, and {} are free there\n",
             human_bytes(static_cast<double>(needed)), folder.parent_path().string(),
             human_bytes(static_cast<double>(space.available)));
}

}  // namespace

Manifest prepare(const Schema& schema, const Path& input, const Path& output, const PrepareOptions& options) {
  validate(schema, schema.name);
  StagedFolder staged(output);
  const EventExtractor extractor(schema);
  const LogStream log(extractor, input, staged.path(), options);
  bool sort = log.unordered();
  try {
    for (;; sort = true) {
      note_space(staged.path(), log.expected_bytes(sort));
      DatasetWriter writer(staged.path(), describe(schema), options.distinct());
      const auto streamed = log.run(sort, writer);
      if (!streamed) {
        fmt::print(stderr, "the log is not in order of user and time: sorting it\n");
        continue;
      }
      Manifest manifest = writer.finish(streamed->attributes, streamed->split, streamed->test_events);
      staged.commit();
      return manifest;
    }
  } catch (const DiskFullError& error) {
    const std::int64_t needed = log.expected_bytes(sort);
    if (needed == 0) throw;
    throw DiskFullError(fmt::format("{} (about {} are needed there in all)", error.what(),
                                    human_bytes(static_cast<double>(needed))));
  }
}

}  // namespace hstu
