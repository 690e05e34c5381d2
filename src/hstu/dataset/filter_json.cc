#include "hstu/dataset/filter_json.h"

namespace hstu {
namespace {

Json to_json(const LeftOut& left) {
  return {{"users", left.users}, {"items", left.items}, {"events", left.events}};
}

LeftOut read_left(const JsonField& field) {
  return {
      .users = field["users"].count(), .items = field["items"].count(), .events = field["events"].count()};
}

}  // namespace

Json to_json(const Ties& ties) {
  Json json = {{"neighbours", ties.neighbours}, {"last_pairs", ties.last_pairs}};
  if (ties.seed) json["shuffled_by_seed"] = *ties.seed;
  return json;
}

Json to_json(const FilterReport& filters) {
  const EventFilters& rules = filters.rules;
  return {{"duplicates", word_of(kDuplicates, rules.duplicates)},
          {"duplicates_of", word_of(kSameEvents, rules.duplicates_of)},
          {"longest_user", rules.longest_user},
          {"core", rules.core},
          {"core_once", rules.core_once},
          {"shortest_user", rules.shortest_user},
          {"found",
           {{"duplicates", filters.duplicates},
            {"longest_user", to_json(filters.longest)},
            {"core", to_json(filters.core)},
            {"core_rounds", filters.core_rounds},
            {"shortest_user", to_json(filters.shortest)}}}};
}

Ties read_ties(const JsonField& field) {
  Ties ties{.neighbours = field["neighbours"].count(), .last_pairs = field["last_pairs"].count(), .seed = {}};
  if (field.has("shuffled_by_seed")) ties.seed = field["shuffled_by_seed"].count();
  return ties;
}

FilterReport read_filters(const JsonField& field) {
  const JsonField found = field["found"];
  return {.rules = {.duplicates = field["duplicates"].choice(kDuplicates),
                    .duplicates_of = field["duplicates_of"].choice(kSameEvents),
                    .longest_user = field["longest_user"].count(),
                    .core = field["core"].count(),
                    .core_once = field["core_once"].boolean(),
                    .shortest_user = field["shortest_user"].count()},
          .duplicates = found["duplicates"].count(),
          .longest = read_left(found["longest_user"]),
          .core = read_left(found["core"]),
          .shortest = read_left(found["shortest_user"]),
          .core_rounds = found["core_rounds"].count()};
}

}  // namespace hstu
