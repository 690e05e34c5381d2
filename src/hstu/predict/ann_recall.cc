#include "hstu/predict/ann_recall.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/dataset/names.h"
#include "hstu/predict/csv_reader.h"

namespace hstu {
namespace {

struct ListedItem {
  std::int64_t item = 0;
  std::int64_t rank = 0;
};
struct List {
  std::string name;  // for messages
  std::vector<ListedItem> items;
};
using Lists = std::map<std::int64_t, List>;  // by id, which is a fixed order of sums

// The ids of two tables, of which one may have texts where the other has the numbers that hstu makes of them
// (dataset/names.h), or numbers as pandas writes them beside missing values ("10.0").
class Ids {
 public:
  std::int64_t id_of(std::string_view text) {
    constexpr std::string_view kNoFraction = ".0";
    std::string_view digits = text;
    if (digits.ends_with(kNoFraction)) digits.remove_suffix(kNoFraction.size());
    const auto number = parse_number<std::int64_t>(digits);
    if (!number || std::to_string(*number) != digits) return id_of_text(text);
    number_of_hash_.emplace(id_of_text(digits), *number);
    return *number;
  }
  // Of an id of id_of(), once all are known: a number may be the hash of another one's digits.
  std::int64_t settled(std::int64_t id) const {
    const auto found = number_of_hash_.find(id);
    return found == number_of_hash_.end() ? id : found->second;
  }

 private:
  std::unordered_map<std::int64_t, std::int64_t> number_of_hash_;
};

std::int64_t read_rank(const CsvReader& rows, std::size_t column) {
  const std::int64_t rank = rows.integer(column);
  if (rank < 1) rows.refuse(column, fmt::format("expected a rank from 1, found {}", rank));
  return rank;
}

Lists read_lists(CsvReader& rows, const std::string& name, Ids& names, Ids& items) {
  const std::size_t list_column = rows.column(name), item_column = rows.column("item");
  const bool ranked = rows.has_column("rank");
  const std::size_t rank_column = ranked ? rows.column("rank") : 0;
  Lists lists;
  while (rows.next()) {
    List& list = lists[names.id_of(rows.field(list_column))];
    if (list.items.empty()) list.name = rows.field(list_column);
    const std::int64_t rank = ranked ? read_rank(rows, rank_column) : std::ssize(list.items) + 1;
    list.items.push_back({items.id_of(rows.field(item_column)), rank});
  }
  return lists;
}

void refuse_repeated_ranks(const Lists& lists, const Path& file) {
  for (const auto& [id, list] : lists) {
    std::set<std::int64_t> ranks;
    for (const ListedItem& item : list.items)
      check(ranks.insert(item.rank).second, "{}: the list of {} has the rank {} twice", file.string(),
            list.name, item.rank);
  }
}

// By item and rank: an item has its first place.
void sort_items(std::vector<ListedItem>& list) {
  std::sort(list.begin(), list.end(), [](const ListedItem& a, const ListedItem& b) {
    return a.item != b.item ? a.item < b.item : a.rank < b.rank;
  });
}

// Beyond the last rank of all lists, recall would be that of fewer items than K.
std::vector<std::int64_t> chosen_cutoffs(std::vector<std::int64_t> asked, const Lists& exact,
                                         const Path& file) {
  std::int64_t most = 0;
  for (const auto& [id, list] : exact)
    for (const ListedItem& item : list.items) most = std::max(most, item.rank);
  if (asked.empty()) {
    for (const std::int64_t k : {1, 10, 100})
      if (k <= most) asked.push_back(k);
  }
  for (const std::int64_t k : asked)
    if (k < 1 || k > most)
      fail_usage("--k {}: expected 1 to {}, the last rank of {}", k, most, file.string());
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  return asked;
}

// The share of the first k of `exact` that is among the first k of `answer`; both are sorted by item.
double recall_of(const std::vector<ListedItem>& exact, const std::vector<ListedItem>& answer,
                 std::int64_t k) {
  std::int64_t wanted = 0, found = 0;
  for (const ListedItem& item : exact) {
    if (item.rank > k) continue;
    ++wanted;
    const auto at = std::lower_bound(answer.begin(), answer.end(), item.item,
                                     [](const ListedItem& a, std::int64_t id) { return a.item < id; });
    if (at != answer.end() && at->item == item.item && at->rank <= k) ++found;
  }
  return wanted == 0 ? 0 : static_cast<double>(found) / static_cast<double>(wanted);
}

void refuse_repeated_items(const Lists& lists, const Path& file) {
  for (const auto& [id, list] : lists)
    for (std::size_t i = 1; i < list.items.size(); ++i)
      check(list.items[i].item != list.items[i - 1].item, "{}: the list of {} has an item twice",
            file.string(), list.name);
}

// Lists and items by their settled ids; items sorted.
Lists settled(Lists lists, const Ids& names, const Ids& items) {
  Lists result;
  for (auto& [id, list] : lists) {
    for (ListedItem& item : list.items) item.item = items.settled(item.item);
    List& same = result[names.settled(id)];
    if (same.items.empty()) same.name = list.name;
    same.items.insert(same.items.end(), list.items.begin(), list.items.end());
  }
  for (auto& [id, list] : result) sort_items(list.items);
  return result;
}

}  // namespace

AnnRecall ann_recall(const AnnRecallOptions& options) {
  CsvReader exact_rows{ByteSource(options.exact)}, answer_rows{ByteSource(options.answers)};
  const bool by_request = exact_rows.has_column("request") && answer_rows.has_column("request");
  const std::string name = by_request ? "request" : "user";
  Ids names, items;
  Lists exact = read_lists(exact_rows, name, names, items),
        answers = read_lists(answer_rows, name, names, items);
  check(!exact.empty(), "{}: there is no row, so that there is nothing to compare with",
        options.exact.string());
  exact = settled(std::move(exact), names, items);
  answers = settled(std::move(answers), names, items);
  refuse_repeated_ranks(exact, options.exact);
  refuse_repeated_ranks(answers, options.answers);
  refuse_repeated_items(exact, options.exact);

  AnnRecall result;
  result.cutoffs = chosen_cutoffs(options.cutoffs, exact, options.exact);
  result.lists = std::ssize(exact);
  result.recall.assign(result.cutoffs.size(), 0);
  for (const auto& [id, list] : exact) {
    const auto answer = answers.find(id);
    if (answer == answers.end()) {
      ++result.without_answer;
      continue;
    }
    for (std::size_t c = 0; c < result.cutoffs.size(); ++c)
      result.recall[c] += recall_of(list.items, answer->second.items, result.cutoffs[c]);
  }
  for (double& recall : result.recall) recall /= static_cast<double>(result.lists);
  for (const auto& [id, list] : answers) result.unknown += exact.contains(id) ? 0 : 1;
  return result;
}

Json to_json(const AnnRecall& recall) {
  Json json{{"lists", recall.lists}, {"without_answer", recall.without_answer}, {"unknown", recall.unknown}};
  for (std::size_t c = 0; c < recall.cutoffs.size(); ++c)
    json[fmt::format("recall@{}", recall.cutoffs[c])] = recall.recall[c];
  return json;
}

}  // namespace hstu
