#include "hstu/predict/request_reader.h"

#include <string>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/batching/distinct_ids.h"

namespace hstu {

RequestReader::RequestReader(const Path& file, const ColumnNames& names, const Dataset& dataset,
                             const std::vector<bool>& needed, bool catalogue, bool since_1970)
    : rows_(ByteSource(file, word_of(kTimeSteps, names.time_step))),
      time_{rows_.column(names.time), names.time_step, since_1970},
      user_(rows_.column(names.user)),
      request_(optional_column(names.request)),
      item_(optional_column(names.item)),
      candidates_(optional_column(names.candidates)),
      user_texts_(dataset.manifest().hashed.contains("user")),
      item_texts_(dataset.manifest().hashed.contains("item")) {
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
  const Manifest& manifest = dataset.manifest();
  context_.resize(manifest.context.size());
  for (std::size_t c = 0; c < context_.size(); ++c) {
    if (!needed[c]) continue;
    context_[c].column = rows_.column(manifest.context[c]);
    const std::string of = "context_" + manifest.context[c];
    if (contains(manifest.names, of)) context_[c].codes.emplace(dataset.folder(), manifest, of);
  }
}

std::size_t RequestReader::optional_column(const std::string& name) const {
  return rows_.has_column(name) ? rows_.column(name) : kNone;
}

bool RequestReader::next(Request& request) {
  if (!rows_.next()) return false;
  request.number = rows_.rows();
  request.id = request_ == kNone ? std::to_string(request.number) : std::string(rows_.field(request_));
  request.user = read_id(rows_, user_, user_texts_);
  request.user_text = rows_.field(user_);
  request.time = seconds_of(rows_, time_);
  request.items.clear();
  if (item_ != kNone) read_item(rows_, item_, item_texts_, request.items);
  if (candidates_ != kNone) read_items(rows_, candidates_, item_texts_, request.items);
  request.context.clear();
  for (const ContextColumn& context : context_) request.context.push_back(context_value(context));
  return true;
}

std::int64_t RequestReader::context_value(const ContextColumn& context) {
  if (context.column == kNone) return 0;
  if (!context.codes) return rows_.integer(context.column);
  const auto code = context.codes->id_of(rows_.field(context.column));
  if (!code) ++unknown_texts_;
  return code.value_or(0);
}

Items read_catalogue(const Path& file, const ColumnNames& names, bool texts) {
  CsvReader rows{ByteSource(file, word_of(kTimeSteps, names.time_step))};
  const std::size_t column = rows.column(names.item);
  DistinctIds seen;
  Items items;
  while (rows.next()) {
    read_item(rows, column, texts, items);
    if (seen.find(items.ids.back()) != DistinctIds::kAbsent)
      rows.refuse(column, fmt::format("the item {} occurs a second time", rows.field(column)));
    seen.insert(items.ids.back());
  }
  check(!items.ids.empty(), "{}: the catalogue has no items", file.string());
  return items;
}

}  // namespace hstu
