#include "hstu/events/builtin_schemas.h"

#include <array>

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

}  // namespace hstu
