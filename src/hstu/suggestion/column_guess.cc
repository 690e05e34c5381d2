#include "hstu/suggestion/column_guess.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "hstu/base/contains.h"
#include "hstu/events/calendar.h"

namespace hstu {
namespace {

using Kind = RawColumn::Kind;
using Words = std::span<const std::string_view>;

// Earlier words are better.
constexpr std::array<std::string_view, 17> kUserWords{
    "user",  "uid",    "customer", "member",   "visitor", "client", "account", "session", "person",
    "buyer", "reader", "viewer",   "reviewer", "author",  "who",    "device",  "u"};
constexpr std::array<std::string_view, 21> kItemWords{
    "item",  "iid",      "product", "sku",     "asin",    "video", "movie",
    "track", "song",     "article", "listing", "content", "offer", "book",
    "news",  "creative", "ad",      "goods",   "game",    "what",  "i"};
constexpr std::array<std::string_view, 9> kTimeWords{"timestamp", "time", "ts",   "at",     "datetime",
                                                     "date",      "when", "unix", "created"};
constexpr std::array<std::string_view, 12> kTypeWords{"event",    "action",      "type",      "kind",
                                                      "behavior", "interaction", "behaviour", "activity",
                                                      "verb",     "operation",   "verdict",   "feedback"};
constexpr std::array<std::string_view, 6> kRatingWords{"rating", "score", "stars",
                                                       "grade",  "rate",  "overall"};
// What a model is usually asked to predict.
constexpr std::array<std::string_view, 22> kGoalWords{
    "label",     "target",    "purchase", "buy",      "bought", "order",   "transaction", "conversion",
    "converted", "subscribe", "like",     "liked",    "click",  "clicked", "listen",      "play",
    "watch",     "long",      "cart",     "favorite", "save",   "share"};

// "userId" and "USER_ID": user, id.
std::vector<std::string> words_of_name(const std::string& name) {
  std::vector<std::string> words(1);
  bool lower_before = false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool upper = std::isupper(byte) != 0;
    if (std::isalnum(byte) == 0 || (upper && lower_before)) words.emplace_back();
    if (std::isalnum(byte) != 0) words.back() += static_cast<char>(std::tolower(byte));
    lower_before = std::islower(byte) != 0;
  }
  std::erase(words, "");
  return words;
}

// 0: the name has none of the words. A name that is a word ("user_id", "userid") counts more than one that
// contains it ("user_age").
int name_score(const std::string& name, Words known) {
  std::vector<std::string> words = words_of_name(name);
  if (words.empty()) return 0;
  const bool id = words.size() > 1 && words.back() == "id";
  if (id) words.pop_back();
  int best = 0;
  for (std::size_t k = 0; k < known.size(); ++k) {
    const int place = static_cast<int>(known.size() - k);
    const bool whole =
        words.size() == 1 && (words[0] == known[k] || words[0] == std::string(known[k]) + "id");
    const bool part = known[k].size() > 1 && contains(words, known[k]);
    const int score = whole ? 200 + place : part ? (id ? 100 : 50) + place : 0;
    best = std::max(best, score);
  }
  return best;
}

bool may_be_id(const ColumnSummary& column) {
  const bool number = column.kind == Kind::kInteger || (column.kind == Kind::kReal && column.whole);
  return (number && column.min >= 0) || column.kind == Kind::kText;
}

// The column of the highest score, the first of equal ones; nothing if all scores are 0.
template <typename Score>
const ColumnSummary* best_of(const std::vector<ColumnSummary>& columns, const Score& score) {
  const ColumnSummary* best = nullptr;
  int highest = 0;
  for (const ColumnSummary& column : columns) {
    const int found = column.distinct > 0 ? score(column) : 0;
    if (found > highest) best = &column, highest = found;
  }
  return best;
}

// "category_id": the number of something, whatever its size.
bool is_named_id(const ColumnSummary& column) {
  const std::vector<std::string> words = words_of_name(column.name);
  return words.size() > 1 && words.back() == "id";
}

// Ratings, times and kinds of events are no ids, though their names may contain the word of one:
// "userRating".
bool measures(const ColumnSummary& column) {
  return name_score(column.name, kRatingWords) > 0 || name_score(column.name, kTypeWords) > 0 ||
         (name_score(column.name, kTimeWords) > 0 && !is_named_id(column));
}

// As doubles, the largest integers are 2^63, which no integer is; they are no times.
std::optional<FittingUnit> unit_of_largest(const ColumnSummary& column) {
  constexpr double kEnd = 0x1p63;
  const bool is_integer = column.max >= -kEnd && column.max < kEnd;
  return is_integer ? fitting_unit(static_cast<std::int64_t>(column.max)) : std::nullopt;
}

bool looks_like_a_time(const ColumnSummary& column) {
  return column.kind == Kind::kSeconds ||
         (column.kind == Kind::kInteger && !is_named_id(column) && unit_of_largest(column).has_value());
}

// Many values: ids rather than ratings, ages or categories.
bool has_many_values(const ColumnSummary& column) {
  constexpr std::int64_t kMany = 32, kRowsOfAValue = 20;
  return column.distinct > kMany || column.distinct > column.rows / kRowsOfAValue;
}

// `others`: the words of ids of another role, for columns that must not be taken without a word.
std::optional<GuessedColumn> guess_id(const std::vector<ColumnSummary>& columns, Words words, Words others,
                                      const ColumnSummary* taken) {
  constexpr int kNamed = 100;
  const auto suitable = [&](const ColumnSummary& column) { return &column != taken && may_be_id(column); };
  if (const auto* named = best_of(columns, [&](const ColumnSummary& c) {
        const int score = suitable(c) ? name_score(c.name, words) : 0;
        return score >= kNamed || !measures(c) ? score : 0;
      })) {
    return GuessedColumn{named, "by its name"};
  }
  const auto* first = best_of(columns, [&](const ColumnSummary& c) {
    if (!suitable(c) || measures(c) || looks_like_a_time(c) || c.distinct <= 2) return 0;
    if (name_score(c.name, others) >= kNamed) return 0;
    return 1 + (c.kind == Kind::kInteger ? 1 : 0) + (is_named_id(c) ? 2 : 0) + (has_many_values(c) ? 4 : 0);
  });
  if (first == nullptr) return std::nullopt;
  return GuessedColumn{first, fmt::format("no name says so: the first column of {} that may be ids",
                                          first->kind == Kind::kInteger ? "integers" : "texts")};
}

// Names of actions consist of letters, digits, _ and -.
std::string plain_name(const std::string& text) {
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ? c : '_';
  return name.empty() ? "empty" : name;
}

constexpr std::size_t kMostActions = 7;

class ActionList {
 public:
  void add(std::string name, std::vector<Condition> when) {
    while (std::any_of(guess_.actions.begin(), guess_.actions.end(),
                       [&](const ActionRule& action) { return action.name == name; }))
      name += "_";
    guess_.actions.push_back({.name = std::move(name),
                              .bit = static_cast<std::uint8_t>(1u << guess_.actions.size()),
                              .when = std::move(when)});
  }
  GuessedActions finish(std::string reason, std::string label, std::vector<const ColumnSummary*> columns) {
    guess_.reason = std::move(reason);
    guess_.label = std::move(label);
    guess_.columns = std::move(columns);
    return std::move(guess_);
  }
  const std::vector<ActionRule>& actions() const { return guess_.actions; }

 private:
  GuessedActions guess_;
};

GuessedActions actions_of_types(const ColumnSummary& column) {
  std::vector<std::string> texts = column.texts;
  // The goal first, so that it is among the seven; without a known word the rarest text.
  auto goal = std::max_element(texts.begin(), texts.end(), [](const std::string& a, const std::string& b) {
    return name_score(a, kGoalWords) < name_score(b, kGoalWords);
  });
  if (name_score(*goal, kGoalWords) == 0) goal = texts.end() - 1;
  std::rotate(texts.begin(), goal, goal + 1);
  if (texts.size() > kMostActions) texts.resize(kMostActions);
  ActionList list;
  for (const std::string& text : texts) {
    list.add(plain_name(text), {{.column = column.name, .comparison = Comparison::kEqual, .value = text}});
  }
  return list.finish(fmt::format("the texts of \"{}\" are the actions", column.name), list.actions()[0].name,
                     {&column});
}

GuessedActions actions_of_flags(std::vector<const ColumnSummary*> flags) {
  const auto goal = std::max_element(flags.begin(), flags.end(), [](const auto* a, const auto* b) {
    return name_score(a->name, kGoalWords) < name_score(b->name, kGoalWords);
  });
  std::rotate(flags.begin(), goal, goal + 1);
  if (flags.size() >= kMostActions) flags.resize(kMostActions - 1);
  ActionList list;
  for (const ColumnSummary* flag : flags) {
    list.add(plain_name(flag->name),
             {{.column = flag->name, .comparison = Comparison::kEqual, .value = "1"}});
  }
  list.add("seen", {});
  return list.finish("columns of 0 and 1 are the actions; every event is also \"seen\"",
                     list.actions()[0].name, std::move(flags));
}

GuessedActions actions_of_rating(const ColumnSummary& column) {
  constexpr double kHigh = 0.75;
  const double bound = column.max <= 1 ? (column.min + column.max) / 2
                                       : std::ceil(column.min + kHigh * (column.max - column.min));
  const std::string value = fmt::format("{}", bound);
  ActionList list;
  list.add("positive", {{.column = column.name, .comparison = Comparison::kAtLeast, .value = value}});
  list.add("negative", {{.column = column.name, .comparison = Comparison::kLess, .value = value}});
  return list.finish(fmt::format("\"{}\" is {}: high ones are the positives", column.name, column.text()),
                     "positive", {&column});
}

}  // namespace

std::optional<GuessedColumn> guess_user(const std::vector<ColumnSummary>& columns) {
  return guess_id(columns, kUserWords, kItemWords, nullptr);
}

std::optional<GuessedColumn> guess_item(const std::vector<ColumnSummary>& columns,
                                        const GuessedColumn& user) {
  return guess_id(columns, kItemWords, kUserWords, user.column);
}

std::optional<GuessedTime> guess_time(const std::vector<ColumnSummary>& columns) {
  constexpr int kHasUnit = 1000, kFits = 500;
  const auto* column = best_of(columns, [&](const ColumnSummary& c) {
    const int name = name_score(c.name, kTimeWords);
    if (c.kind == Kind::kSeconds) return kHasUnit + name;
    const bool number =
        c.kind == Kind::kInteger || (c.kind == Kind::kReal && name > 0 && c.max < kLargestExact);
    if (!number || is_named_id(c)) return 0;
    return name + (unit_of_largest(c) ? kFits : 0);
  });
  if (column == nullptr) return std::nullopt;
  GuessedTime time;
  time.column = column;
  if (column->kind == Kind::kSeconds) {
    time.reason = fmt::format("its type {} is a time", column->type_name);
    return time;
  }
  const auto fitting = unit_of_largest(*column);
  if (fitting) time.unit = fitting->unit;
  time.relative = !fitting;
  time.reason = fitting
                    ? fmt::format("in \"{}\" its last value is of the year {}", fitting->unit, fitting->year)
                    : "by its name; in no unit are its values of the years 1990 to 2100";
  return time;
}

GuessedActions guess_actions(const std::vector<ColumnSummary>& columns,
                             const std::vector<const ColumnSummary*>& used) {
  constexpr std::int64_t kMostTypes = 32, kMostRatings = 101;
  const auto* types = best_of(columns, [&](const ColumnSummary& c) {
    return c.kind == Kind::kText && c.distinct <= kMostTypes ? name_score(c.name, kTypeWords) : 0;
  });
  if (types != nullptr) return actions_of_types(*types);
  const auto is_free = [&](const ColumnSummary& c) { return !contains(used, &c); };
  std::vector<const ColumnSummary*> flags;
  for (const ColumnSummary& c : columns) {
    if (is_free(c) && c.kind == Kind::kInteger && c.distinct > 0 && c.min >= 0 && c.max == 1)
      flags.push_back(&c);
  }
  const auto* rating = best_of(columns, [&](const ColumnSummary& c) {
    return c.kind != Kind::kText && c.distinct > 1 && c.distinct <= kMostRatings
               ? name_score(c.name, kRatingWords)
               : 0;
  });
  if (rating != nullptr) return actions_of_rating(*rating);
  if (!flags.empty()) return actions_of_flags(std::move(flags));
  constexpr std::int64_t kMostKinds = 12;
  const auto* few = best_of(columns, [&](const ColumnSummary& c) {
    return is_free(c) && c.kind == Kind::kText && c.distinct > 1 && c.distinct <= kMostKinds &&
                   !has_many_values(c)
               ? 1
               : 0;
  });
  if (few != nullptr) {
    GuessedActions guess = actions_of_types(*few);
    guess.reason += " (no name says so: it is the first column with few texts)";
    return guess;
  }
  ActionList list;
  list.add("event", {});
  return list.finish(
      "no column says what a user did, so that every event is a positive; change the actions before training "
      "if the log has negatives, such as impressions without a click; else hstu draws some (data.negatives)",
      "event", {});
}

}  // namespace hstu
