#include "hstu/events/builtin_schemas.h"

#include <array>
#include <string_view>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr const char* kArtistMapping = "artist_item_mapping.parquet";
constexpr const char* kAlbumMapping = "album_item_mapping.parquet";

std::vector<Condition> all_of(std::initializer_list<std::string> texts) {
  std::vector<Condition> conditions;
  for (const std::string& text : texts) conditions.push_back(parse_condition(text));
  return conditions;
}

// The name of a file as a pattern that matches nothing else.
std::string pattern_of(const Path& file) {
  std::string pattern;
  for (const char c : file.string()) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

Schema positives_of(const char* name, const std::vector<Path>& files) {
  Schema schema;
  schema.name = name;
  for (const Path& file : files) schema.files.push_back(pattern_of(file));
  schema.user = "user";
  schema.item = "item";
  complete(schema);
  return schema;
}

// The first of `names` that exists in `input`, or "".
template <std::size_t kCount>
std::string find_file(const Path& input, const std::array<const char*, kCount>& names) {
  for (const char* name : names) {
    if (std::filesystem::exists(input / name)) return name;
  }
  return "";
}

}  // namespace

Path find_yambda_mappings(const Path& input) {
  for (const char* place : {".", "shared_metadata", "../../shared_metadata", "../.."}) {
    const Path folder = input / place;
    if (std::filesystem::exists(folder / kArtistMapping)) return folder;
  }
  fail_usage("{} is neither in {} nor in shared_metadata beside it: name its folder with --mappings",
             kArtistMapping, input.string());
}

Schema yambda_schema(const Path& mappings, const SplitRule& split) {
  Schema schema;
  schema.name = "yambda";
  schema.files = {"multi_event.parquet"};
  schema.user = "uid";
  schema.time = "timestamp";
  schema.relative_time = true;
  schema.item = "item_id";
  const Path folder = std::filesystem::absolute(mappings).lexically_normal();
  schema.attributes = {{.name = "artist_id",
                        .value_column = "artist_id",
                        .file = folder / kArtistMapping,
                        .item_column = "item_id"},
                       {.name = "album_id",
                        .value_column = "album_id",
                        .file = folder / kAlbumMapping,
                        .item_column = "item_id"}};
  schema.context = {{.name = "is_organic", .column = "is_organic"}};
  schema.actions = {
      {.name = "listen_plus",
       .bit = kListenPlus,
       .when = all_of({"event_type = listen", "played_ratio_pct >= 50"})},
      {.name = "like", .bit = kLike, .when = all_of({"event_type = like"})},
      {.name = "skip", .bit = kSkip, .when = all_of({"event_type = listen", "played_ratio_pct < 50"})}};
  schema.rankable = all_of({"event_type = listen"});
  schema.label = "listen_plus";
  schema.pools = {"listen_plus", "like", "skip"};
  schema.null_as_zero = {"played_ratio_pct"};
  schema.allowed_texts = {
      {.column = "event_type", .texts = {"listen", "like", "dislike", "unlike", "undislike"}}};
  if (split.test_days > 0) schema.split = split;
  return schema;
}

Schema movielens_schema(const Path& input, double positive_rating) {
  const std::string ratings = find_file(input, std::array{"u.data", "ratings.dat", "ratings.csv"});
  if (ratings.empty()) {
    fail_usage(
        "{} contains no MovieLens ratings: expected u.data (ml-100k), ratings.dat (ml-1m) or ratings.csv "
        "(ml-20m, ml-25m, ml-32m)",
        input.string());
  }
  Schema schema;
  schema.name = "movielens";
  schema.files = {ratings};
  schema.user = "user";
  schema.time = "timestamp";
  schema.relative_time = true;  // seconds since 1970, as the format defines
  schema.item = "item";
  schema.actions = {
      {.name = "positive", .bit = 1, .when = all_of({fmt::format("rating >= {}", positive_rating)})},
      {.name = "negative", .bit = 2, .when = all_of({fmt::format("rating < {}", positive_rating)})},
      {.name = "loved", .bit = 4, .when = all_of({"rating >= 5"})},
      {.name = "hated", .bit = 8, .when = all_of({"rating <= 2"})}};
  schema.label = "positive";
  schema.pools = {"positive", "negative"};
  // Years come from the movies' titles, if their file is in the same folder.
  if (const std::string movies = find_file(input, std::array{"u.item", "movies.dat", "movies.csv"});
      !movies.empty()) {
    schema.attributes = {{.name = "year", .value_column = "year", .file = movies, .item_column = "item"}};
  }
  return schema;
}

Schema sequences_schema(const std::vector<Path>& files, const SequenceFormat& format, TimeUnit unit,
                        bool relative_time) {
  Schema schema = positives_of("sequences", files);
  schema.sequences = format;
  schema.time = format.timed ? "time" : "";
  schema.times = format.timed ? Times::kSeconds : Times::kOrder;
  schema.time_unit = unit;
  schema.relative_time = relative_time || !format.timed;
  if (format.user_texts) schema.keep_names.emplace_back("user");
  if (format.item_texts) schema.keep_names.emplace_back("item");
  return schema;
}

Schema movielens_sequences_schema(const std::vector<Path>& files) {
  Schema schema = positives_of("movielens", files);
  schema.time = "timestamp";
  schema.relative_time = true;  // seconds since 1970, as the format defines
  return schema;
}

std::vector<std::string> kuairand_actions() {
  return {"is_click", "is_like", "is_follow", "is_comment", "is_forward", "is_hate", "long_view"};
}

Schema kuairand_schema(const Path& input, const std::string& label) {
  const std::string folder = std::filesystem::exists(input / "data") ? "data/" : "";
  std::string variant;
  for (const char* known : {"pure", "1k", "27k"}) {
    // The logs of 27K have two parts.
    const std::string log = fmt::format("{}log_standard_4_08_to_4_21_{}", folder, known);
    if (!std::filesystem::exists(input / (log + ".csv")) &&
        !std::filesystem::exists(input / (log + "_part1.csv")))
      continue;
    if (!variant.empty())
      fail_usage("{} contains the logs of KuaiRand {} and {}: give each its own folder", input.string(),
                 variant, known);
    variant = known;
  }
  if (variant.empty()) {
    fail_usage(
        "{} contains no KuaiRand logs: expected log_standard_4_08_to_4_21_pure.csv, _1k.csv or "
        "_27k_part1.csv, "
        "there or in its folder data",
        input.string());
  }
  Schema schema;
  schema.name = "kuairand-" + variant;
  schema.files = {fmt::format("{}log_standard_4_08_to_4_21_{}*.csv", folder, variant),
                  fmt::format("{}log_standard_4_22_to_5_08_{}*.csv", folder, variant)};
  schema.user = "user_id";
  schema.time = "time_ms";
  schema.time_unit = TimeUnit::kMilliseconds;
  schema.item = "video_id";
  schema.context = {{.name = "tab", .column = "tab"}};
  unsigned bit = 1;
  for (const std::string& action : kuairand_actions()) {
    schema.actions.push_back(
        {.name = action, .bit = static_cast<std::uint8_t>(bit), .when = all_of({action + " = 1"})});
    bit *= 2;
  }
  schema.label = label;
  schema.pools = kuairand_actions();
  schema.csv.emplace().integers = {"user_id", "video_id", "tab", "author_id"};
  const std::string videos = fmt::format("{}video_features_basic_{}.csv", folder, variant);
  if (std::filesystem::exists(input / videos)) {
    schema.attributes = {
        {.name = "author_id", .value_column = "author_id", .file = videos, .item_column = "video_id"}};
  }
  return schema;
}

}  // namespace hstu
