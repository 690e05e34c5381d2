#include "hstu/synthetic/generate_tables.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "hstu/base/threads.h"

namespace hstu {
namespace {

const std::shared_ptr<arrow::DataType>& event_type_type() {
  static const auto type = arrow::dictionary(arrow::int32(), arrow::utf8());
  return type;
}

std::shared_ptr<arrow::Array> event_type_names() {
  arrow::StringBuilder builder;
  std::shared_ptr<arrow::Array> names;
  arrow::Status status = builder.AppendValues(words_of(kEventTypes));
  if (status.ok()) status = builder.Finish(&names);
  check(status.ok(), "cannot build the names of event types: {}", status.ToString());
  return names;
}

// Two columns of a mapping, ascending by item id.
void write_mapping(const Path& path, const char* name, const Catalogue& catalogue,
                   const std::vector<ExtraListing>& extra, const std::vector<std::uint32_t>& own) {
  struct Row {
    std::uint32_t item_id, target;
  };
  std::vector<Row> rows;
  rows.reserve(extra.size() + own.size());
  for (const ExtraListing& listing : extra) rows.push_back({catalogue.items()[listing.item].id, listing.id});
  for (std::size_t i = 0; i < own.size(); ++i) rows.push_back({catalogue.items()[i].id, own[i]});
  // Stable: own rows were appended last, so they are the last of an item.
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.item_id < b.item_id; });

  ParquetFile file(
      path, arrow::schema({arrow::field("item_id", arrow::uint32()), arrow::field(name, arrow::uint32())}));
  constexpr std::size_t kTableRowGroup = 1 << 20;
  for (std::size_t begin = 0; begin < rows.size(); begin += kTableRowGroup) {
    std::vector<std::uint32_t> items, targets;
    for (std::size_t i = begin; i < std::min(rows.size(), begin + kTableRowGroup); ++i) {
      items.push_back(rows[i].item_id);
      targets.push_back(rows[i].target);
    }
    file.write({arrow_array<arrow::UInt32Type>(items), arrow_array<arrow::UInt32Type>(targets)});
  }
  file.close();
}

}  // namespace

MultiEventFile::MultiEventFile(const Path& path)
    : file_(path, arrow::schema(
                      {arrow::field("uid", arrow::uint32()), arrow::field("timestamp", arrow::uint32()),
                       arrow::field("item_id", arrow::uint32()), arrow::field("is_organic", arrow::uint8()),
                       arrow::field("played_ratio_pct", arrow::uint16()),
                       arrow::field("track_length_seconds", arrow::uint32()),
                       arrow::field("event_type", event_type_type())})) {}

void MultiEventFile::write(const Catalogue& catalogue, std::uint32_t first_uid,
                           std::span<const std::vector<GeneratedEvent>> users) {
  std::vector<std::size_t> begin(users.size() + 1, 0);
  for (std::size_t u = 0; u < users.size(); ++u) begin[u + 1] = begin[u] + users[u].size();
  const std::size_t n = begin.back();
  std::vector<std::uint32_t> uid(n), timestamp(n), item_id(n), track_length(n);
  std::vector<std::uint8_t> is_organic(n), is_listen(n);
  std::vector<std::uint16_t> played_ratio(n);
  std::vector<std::int32_t> event_type(n);
  parallel_blocks(static_cast<std::int64_t>(users.size()), 16, [&](std::int64_t from, std::int64_t to) {
    for (auto u = static_cast<std::size_t>(from); u < static_cast<std::size_t>(to); ++u) {
      for (std::size_t k = 0; k < users[u].size(); ++k) {
        const GeneratedEvent& event = users[u][k];
        const CatalogueItem& item = catalogue.items()[event.item];
        const std::size_t row = begin[u] + k;
        uid[row] = first_uid + static_cast<std::uint32_t>(u);
        timestamp[row] = event.timestamp;
        item_id[row] = item.id;
        is_organic[row] = event.is_organic;
        is_listen[row] = event.is_listen();
        played_ratio[row] = event.played_ratio_pct;
        track_length[row] = item.length;
        event_type[row] = static_cast<std::int32_t>(event.type);
      }
    }
  });
  file_.write({arrow_array<arrow::UInt32Type>(uid), arrow_array<arrow::UInt32Type>(timestamp),
               arrow_array<arrow::UInt32Type>(item_id), arrow_array<arrow::UInt8Type>(is_organic),
               arrow_array<arrow::UInt16Type>(played_ratio, &is_listen),
               arrow_array<arrow::UInt32Type>(track_length, &is_listen),
               std::make_shared<arrow::DictionaryArray>(
                   event_type_type(), arrow_array<arrow::Int32Type>(event_type), event_type_names())});
}

void write_artist_mapping(const Path& path, const Catalogue& catalogue) {
  std::vector<std::uint32_t> own(catalogue.items().size());
  for (const CatalogueArtist& artist : catalogue.artists()) {
    for (std::uint32_t i = artist.first_item; i < (&artist + 1)->first_item; ++i) own[i] = artist.id;
  }
  write_mapping(path, "artist_id", catalogue, catalogue.featured_artists(), own);
}

void write_album_mapping(const Path& path, const Catalogue& catalogue) {
  std::vector<std::uint32_t> own;
  own.reserve(catalogue.items().size());
  for (const CatalogueItem& item : catalogue.items()) own.push_back(item.album_id);
  write_mapping(path, "album_id", catalogue, catalogue.compilations(), own);
}

void write_last_day(const Path& path, const Catalogue& catalogue, std::span<const TrueListen> listens) {
  std::vector<std::uint32_t> uid, timestamp, item_id;
  std::vector<std::uint8_t> label;
  std::vector<double> probability;
  for (const TrueListen& listen : listens) {
    uid.push_back(listen.uid);
    timestamp.push_back(listen.timestamp);
    item_id.push_back(catalogue.items()[listen.item].id);
    label.push_back(listen.label);
    probability.push_back(static_cast<double>(listen.probability));
  }
  ParquetFile file(
      path, arrow::schema({arrow::field("uid", arrow::uint32()), arrow::field("timestamp", arrow::uint32()),
                           arrow::field("item_id", arrow::uint32()), arrow::field("label", arrow::uint8()),
                           arrow::field("probability", arrow::float64())}));
  file.write({arrow_array<arrow::UInt32Type>(uid), arrow_array<arrow::UInt32Type>(timestamp),
              arrow_array<arrow::UInt32Type>(item_id), arrow_array<arrow::UInt8Type>(label),
              arrow_array<arrow::DoubleType>(probability)});
  file.close();
}

}  // namespace hstu
