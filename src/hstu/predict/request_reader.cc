#include "hstu/predict/request_reader.h"

#include <utility>

#include "hstu/base/error.h"
#include "hstu/batching/distinct_ids.h"

namespace hstu {

RequestReader::RequestReader(const Path& file, ColumnNames names, std::span<const std::string> context,
                             const std::vector<bool>& needed, bool catalogue)
    : rows_(ByteSource(file)),
      time_step_(names.time_step),
      user_(rows_.column(names.user)),
      time_(rows_.column(names.time)),
      request_(optional_column(names.request)),
      item_(optional_column(names.item)),
      candidates_(optional_column(names.candidates)) {
  const bool item = item_ != kNone, candidates = candidates_ != kNone;
  if (catalogue && (item || candidates)) {
    fail_usage("{}: its column \"{}\" and the catalogue both name the items to score: remove one of the two",
               file.string(), item ? names.item : names.candidates);
  }
  if (item && candidates)
    fail_usage("{}: expected the column \"{}\" or \"{}\", found both", file.string(), names.item,
               names.candidates);
  if (!catalogue && !item && !candidates) {
    fail_usage(
        "{}: expected a column \"{}\" with an item, or \"{}\" with a list of items; --columns names other "
        "columns, --catalogue a file of items",
        file.string(), names.item, names.candidates);
  }
  for (std::size_t c = 0; c < context.size(); ++c)
    context_.push_back(needed[c] ? rows_.column(context[c]) : kNone);
}

std::size_t RequestReader::optional_column(const std::string& name) const {
  return rows_.has_column(name) ? rows_.column(name) : kNone;
}

bool RequestReader::next(Request& request) {
  if (!rows_.next()) return false;
  request.number = rows_.rows();
  request.id = request_ == kNone ? std::to_string(request.number) : std::string(rows_.field(request_));
  request.user = rows_.integer(user_);
  request.time = seconds_of(rows_, time_, time_step_);
  request.items.clear();
  if (item_ != kNone) request.items.push_back(rows_.integer(item_));
  if (candidates_ != kNone) read_list(rows_, candidates_, request.items);
  request.context.clear();
  for (const std::size_t column : context_)
    request.context.push_back(column == kNone ? 0 : rows_.integer(column));
  return true;
}

std::vector<std::int64_t> read_catalogue(const Path& file, const ColumnNames& names) {
  CsvReader rows{ByteSource(file)};
  const std::size_t column = rows.column(names.item);
  DistinctIds items;
  while (rows.next()) {
    const std::int64_t item = rows.integer(column);
    if (items.find(item) != DistinctIds::kAbsent)
      rows.refuse(column, fmt::format("the item {} occurs a second time", item));
    items.insert(item);
  }
  check(items.size() > 0, "{}: the catalogue has no items", file.string());
  const auto all = items.in_order_of_appearance();
  return {all.begin(), all.end()};
}

}  // namespace hstu
