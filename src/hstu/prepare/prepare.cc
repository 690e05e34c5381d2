#include "hstu/prepare/prepare.h"

#include <cstdio>
#include <memory>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/dataset/appended_before.h"
#include "hstu/dataset/segments.h"
#include "hstu/dataset/writer.h"
#include "hstu/events/event_extractor.h"
#include "hstu/events/log_stream.h"
#include "hstu/prepare/coverage.h"
#include "hstu/prepare/mistakes.h"

namespace hstu {
namespace {

// Four columns of 8 bytes, one of 4, four of 1, and two of 8 for about every other event; 10 in the
// reference's Parquet files.
constexpr std::int64_t kMlcommonsEventBytes = 58;

// Prints a note if the disk probably has too little space.
void note_space(const Path& folder, std::int64_t needed) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error || static_cast<std::uintmax_t>(needed) <= space.available) return;
  print_note("note: the output needs about {} in {}, where {} are free\n",
             human_bytes(static_cast<double>(needed)),
             std::filesystem::absolute(folder).parent_path().string(),
             human_bytes(static_cast<double>(space.available)));
}

// The names of ids, if the schema keeps them; the manifest says whose ids are hashes.
void write_ids(const char* of, bool hashed, NameCollector* names, const Path& folder, Manifest& manifest) {
  if (!hashed) return;
  std::optional<std::int64_t>& collisions = manifest.hashed[of];
  if (names == nullptr) return;
  collisions = names->write(folder, of, manifest);
  if (*collisions > 0)
    print_note("warning: {} {} names have the same id as another name, and are one {} from now on\n",
               *collisions, of, of);
}

// What a dataset has besides the columns of a log of integers.
void write_names(const Schema& schema, const StreamedLog& log, const Path& folder, Manifest& manifest) {
  write_ids("user", log.hashed_users, log.user_names.get(), folder, manifest);
  write_ids("item", log.hashed_items, log.item_names.get(), folder, manifest);
  for (std::size_t c = 0; c < schema.context.size(); ++c) {
    if (log.contexts[c])
      write_code_names(folder, "context_" + schema.context[c].name, log.contexts[c]->names(), manifest);
  }
  for (std::size_t a = 0; a < schema.attributes.size(); ++a) {
    if (const auto& names = log.attributes.names[a])
      write_code_names(folder, "attribute_" + schema.attributes[a].name, *names, manifest);
  }
  if (log.hashed_items && !schema.attributes.empty()) write_item_ids(folder, log.attributes.items, manifest);
}

void note_dropped(const DroppedRows& dropped) {
  if (dropped.sum() == 0) return;
  print_note("left out {} rows: {} with nulls (drop_null), {} that do not satisfy the conditions of keep\n",
             with_separators(dropped.sum()), with_separators(dropped.nulls), with_separators(dropped.others));
}

// What receives the test events.
EventSink* test_sink(DatasetWriter& /*writer*/) {
  return nullptr;  // they are counted alone
}
EventSink* test_sink(MlcommonsWriter& writer) {
  return &writer.test_events();
}

// Streams the log into a new Sink without sorting or, if it is not in order, sorted into another Sink. An
// event takes about `event_bytes` of columns. finish(sink, streamed, log, staged) completes the output and
// commits it.
template <typename MakeSink, typename Finish>
auto stream_into(const Schema& schema, const Path& input, const Path& output, const Dictionaries& known,
                 const PrepareOptions& options, std::int64_t event_bytes, const MakeSink& make_sink,
                 const Finish& finish) {
  validate(schema, schema.name);
  StagedFolder staged(output);
  const EventExtractor extractor(schema);
  const LogStream log(extractor, input, staged.path(), options, known);
  bool sort = log.unordered();
  try {
    for (;; sort = true) {
      note_space(staged.path(), log.expected_bytes(sort, event_bytes));
      auto sink = make_sink(staged.path());
      if (const auto streamed = log.run(sort, *sink, test_sink(*sink))) {
        return finish(*sink, *streamed, log, staged);
      }
      print_note("the log is not ordered by user and time: sorting it\n");
    }
  } catch (const DiskFullError& error) {
    const std::int64_t needed = log.expected_bytes(sort, event_bytes);
    if (needed == 0) throw;
    throw DiskFullError(fmt::format("{} (about {} are needed there in all)", error.what(),
                                    human_bytes(static_cast<double>(needed))));
  }
}

// Writes a dataset, or a segment of one. finish(writer, streamed) writes the attributes and the manifest;
// without one, nothing is committed.
template <typename Finish>
std::optional<Manifest> write_dataset(const Schema& schema, const Path& input, const Path& output,
                                      const Dictionaries& known, const PrepareOptions& options,
                                      const Finish& finish) {
  return stream_into(
      schema, input, output, known, options,
      4 + 4 + 1 + static_cast<std::int64_t>(schema.context.size()) + (has_weights(schema) ? 4 : 0),
      [&](const Path& folder) {
        return std::make_unique<DatasetWriter>(folder, describe(schema), options.distinct());
      },
      [&](DatasetWriter& writer, const StreamedLog& streamed, const LogStream& log, StagedFolder& staged) {
        write_names(schema, streamed, writer.folder(), writer.manifest());
        writer.manifest().filters = streamed.filters;
        std::optional<Manifest> manifest = finish(writer, streamed);
        note_dropped(streamed.dropped);
        if (!manifest) return manifest;
        for (const std::string& mistake : mistakes_of(schema, log.files(), streamed, *manifest))
          print_note("warning: {}\n", mistake);
        const Dataset written(writer.folder(), {{writer.folder(), *manifest}});
        for (const std::string& mistake : coverage_mistakes(schema, input, log.files(), written))
          print_note("warning: {}\n", mistake);
        staged.commit();
        return manifest;
      });
}

// A rule that yields no anchor causes a note: the dataset is complete without an index.
void store_first_index(const Dataset& dataset, const AnchorRule& rule) {
  try {
    open_anchor_index(dataset, rule);
  } catch (const UsageError& error) {
    print_note("note: no index of anchors was stored: {}\n", error.what());
  }
}

// Every index of anchors that the first segment has, for the others too.
void extend_anchor_indices(const Dataset& dataset) {
  for (const AnchorRule& rule : stored_anchor_rules(dataset)) open_anchor_index(dataset, rule);
}

void check_appendable(const Schema& schema, const Manifest& manifest, const Path& dataset) {
  if (manifest.split || (schema.split && schema.split->test_days > 0)) {
    fail_usage(
        "--append {}: a split by time drops events at the end of a log, so that nothing can follow: prepare "
        "and append with test_days = 0, and hold out by evaluation.holdout_*",
        dataset.string());
  }
  if (manifest.times == Times::kOrder) {
    fail_usage(
        "--append {}: its times are an order (\"times\": \"order\"), and nothing says where new events "
        "belong "
        "in it: prepare all events together again",
        dataset.string());
  }
  if (manifest.filters || schema.filters.active()) {
    fail_usage(
        "--append {}: duplicates, core, shortest_user and longest_user depend on all events together, and "
        "{}: prepare all events together again",
        dataset.string(),
        manifest.filters ? "the dataset was made with them" : "new events are a part alone");
  }
  if ((manifest.ties && manifest.ties->seed) || schema.ties == TieRule::kShuffle) {
    fail_usage(
        "--append {}: ties = \"shuffle\" mixes all events of a time together, and {}: prepare all events "
        "together again",
        dataset.string(),
        schema.ties == TieRule::kShuffle ? "new events are a part alone" : "the dataset was made with it");
  }
}

}  // namespace

Manifest prepare(const Schema& schema, const Path& input, const Path& output, const PrepareOptions& options,
                 const Dictionaries& known, const std::optional<AnchorRule>& index) {
  return *write_dataset(
      schema, input, output, known, options,
      [&](DatasetWriter& writer, const StreamedLog& streamed) -> std::optional<Manifest> {
        Manifest manifest =
            writer.finish(streamed.attributes.attributes, streamed.split, streamed.test_events);
        if (index) store_first_index(Dataset(writer.folder(), {{writer.folder(), manifest}}), *index);
        return manifest;
      });
}

AppendReport append(const Schema& schema, const Path& input, const Path& dataset,
                    const PrepareOptions& options) {
  const std::vector<SegmentFolder> before = read_segments(dataset);
  const Manifest manifest = manifest_of(before);
  check_appendable(schema, manifest, dataset);
  AppendReport report;
  write_dataset(
      schema, input, segment_folder(dataset, std::ssize(before)), read_dictionaries(dataset, manifest),
      options, [&](DatasetWriter& writer, const StreamedLog& streamed) -> std::optional<Manifest> {
        const auto complete = [&](Manifest& segment) {
          check_continues(manifest, dataset, segment);
          segment.extends = extension_of(Dataset(dataset, before), writer.folder(), segment);
        };
        Manifest segment = writer.finish(streamed.attributes.attributes, {}, {}, complete);
        std::vector<SegmentFolder> folders = before;
        folders.push_back({writer.folder(), segment});
        const Dataset both(dataset, std::move(folders));
        report = report_of(both);
        report.repeated = before.size() > 1 && has_same_events(before.back().manifest, segment);
        if (report.repeated) return std::nullopt;
        if (report.duplicates == segment.counts.events) {
          fail_usage("{}: all {} events are in {} already, with the same user, time, item and actions: {}",
                     input.string(), with_separators(report.duplicates), dataset.string(), kAppendedBefore);
        }
        extend_anchor_indices(both);
        return segment;
      });
  if (report.repeated) extend_anchor_indices(Dataset(dataset));  // earlier versions appended first
  return report;
}

MlcommonsCounts prepare_mlcommons(const Path& input, const Path& output, const SplitRule& split,
                                  const MlcommonsOptions& layout, const PrepareOptions& options) {
  const std::string size = std::filesystem::canonical(input).filename().string();
  return stream_into(
      mlcommons_schema(input, split), input, output, {}, options, kMlcommonsEventBytes,
      [&](const Path& folder) {
        return std::make_unique<MlcommonsWriter>(folder, layout, options.attribute());
      },
      [&](MlcommonsWriter& writer, const StreamedLog& log, const LogStream&, StagedFolder& staged) {
        const MlcommonsCounts counts =
            writer.finish({.size = size, .time = log.time, .split = log.split, .rule = split});
        staged.commit();
        return counts;
      });
}

}  // namespace hstu
