#include "hstu/predict/ann_recall.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/dataset/names.h"
#include "hstu/predict/csv_reader.h"

namespace hstu {
namespace {

struct ListedItem {
  std::int64_t item = 0;  // the hash of its text
  std::int64_t rank = 0;
};
using ListsByName = std::unordered_map<std::string, std::vector<ListedItem>>;

std::int64_t read_rank(const CsvReader& rows, std::size_t column) {
  const std::int64_t rank = rows.integer(column);
  if (rank < 1) rows.refuse(column, fmt::format("expected a rank from 1, found {}", rank));
  return rank;
}

ListsByName read_lists(CsvReader& rows, const std::string& name) {
  const std::size_t list_column = rows.column(name), item_column = rows.column("item");
  const bool ranked = rows.has_column("rank");
  const std::size_t rank_column = ranked ? rows.column("rank") : 0;
  ListsByName lists;
  while (rows.next()) {
    std::vector<ListedItem>& list = lists[std::string(rows.field(list_column))];
    const std::int64_t rank = ranked ? read_rank(rows, rank_column) : std::ssize(list) + 1;
    list.push_back({id_of_text(rows.field(item_column)), rank});
  }
  return lists;
}

// By item and rank: an item has its first place.
void sort_items(std::vector<ListedItem>& list) {
  std::sort(list.begin(), list.end(), [](const ListedItem& a, const ListedItem& b) {
    return a.item != b.item ? a.item < b.item : a.rank < b.rank;
  });
}

std::int64_t longest(const ListsByName& lists) {
  std::int64_t most = 0;
  for (const auto& [name, list] : lists) most = std::max(most, std::ssize(list));
  return most;
}

std::vector<std::int64_t> chosen_cutoffs(std::vector<std::int64_t> asked, const ListsByName& exact) {
  if (asked.empty()) {
    for (const std::int64_t k : {1, 10, 100})
      if (k <= std::max<std::int64_t>(1, longest(exact))) asked.push_back(k);
  }
  for (const std::int64_t k : asked)
    if (k < 1) fail_usage("--k {}: expected at least 1", k);
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

void refuse_repeated(const ListsByName& lists, const Path& file) {
  for (const auto& [name, list] : lists)
    for (std::size_t i = 1; i < list.size(); ++i)
      check(list[i].item != list[i - 1].item, "{}: the list of {} has an item twice", file.string(), name);
}

}  // namespace

AnnRecall ann_recall(const AnnRecallOptions& options) {
  CsvReader exact_rows{ByteSource(options.exact)}, answer_rows{ByteSource(options.answers)};
  const bool by_request = exact_rows.has_column("request") && answer_rows.has_column("request");
  const std::string name = by_request ? "request" : "user";
  ListsByName exact = read_lists(exact_rows, name), answers = read_lists(answer_rows, name);
  check(!exact.empty(), "{}: there is no row, so that there is nothing to compare with",
        options.exact.string());
  for (auto& [of, list] : exact) sort_items(list);
  for (auto& [of, list] : answers) sort_items(list);
  refuse_repeated(exact, options.exact);

  AnnRecall result;
  result.cutoffs = chosen_cutoffs(options.cutoffs, exact);
  result.lists = std::ssize(exact);
  std::vector<std::string> names;  // a fixed order of the sums
  for (const auto& [of, list] : exact) names.push_back(of);
  std::sort(names.begin(), names.end());
  result.recall.assign(result.cutoffs.size(), 0);
  for (const std::string& of : names) {
    const auto answer = answers.find(of);
    if (answer == answers.end()) {
      ++result.without_answer;
      continue;
    }
    for (std::size_t c = 0; c < result.cutoffs.size(); ++c)
      result.recall[c] += recall_of(exact.at(of), answer->second, result.cutoffs[c]);
  }
  for (double& recall : result.recall) recall /= static_cast<double>(result.lists);
  for (const auto& [of, list] : answers) result.unknown += exact.contains(of) ? 0 : 1;
  return result;
}

Json to_json(const AnnRecall& recall) {
  Json json{{"lists", recall.lists}, {"without_answer", recall.without_answer}, {"unknown", recall.unknown}};
  for (std::size_t c = 0; c < recall.cutoffs.size(); ++c)
    json[fmt::format("recall@{}", recall.cutoffs[c])] = recall.recall[c];
  return json;
}

}  // namespace hstu
