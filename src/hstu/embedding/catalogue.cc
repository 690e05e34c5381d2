#include "hstu/embedding/catalogue.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/rows/wire_rows.h"

namespace hstu {
namespace {

// Of the list, what this rank has.
std::vector<std::int64_t> part_of(const std::vector<std::int64_t>& ids, const RowOwners& owners) {
  std::vector<std::int64_t> mine;
  if (owners.by_row()) {
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(mine),
                 [&](std::int64_t id) { return owners.owns(id); });
    return mine;
  }
  const auto n = std::ssize(ids);
  const auto begin = [&](std::int64_t rank) { return ids.begin() + n * rank / owners.ranks; };
  mine.assign(begin(owners.rank), begin(owners.rank + 1));
  return mine;
}

void check_table(const EmbeddingTable& table, std::int64_t size) {
  const std::string& name = table.config().name;
  if (table.owners().by_column())
    fail_usage(
        "tables.{}.ranks = \"column\": all ids of the table are read at once, which needs whole rows: set "
        "\"split\", \"table\" or \"copy\"",
        name);
  if (table.config().limits.any())
    fail_usage(
        "tables.{}: all ids of the table are read at once, so its rows may not leave: remove its limits",
        name);
  const CacheSize cache = table.cache_size();
  if (cache.lines > 0 && !cache.grows && cache.lines < size)
    fail_usage("tables.{}: all ids of the table are read at once: {} rows, and the cache has room for {}",
               name, size, cache.lines);
}

}  // namespace

Catalogue::Catalogue(TableSet& tables, std::size_t table, const std::vector<std::int64_t>& ids,
                     RowAccess access)
    : tables_(tables), table_(table) {
  const EmbeddingTable& of = tables[table];
  const auto disorder = std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>());
  require(disorder == ids.end() && (ids.empty() || (ids.front() >= 0 && ids.back() < of.config().rows)),
          "table \"{}\": expected ascending ids from 0 to {}", of.config().name, of.config().rows - 1);
  const std::vector<std::int64_t> mine = part_of(ids, of.owners());
  check_table(of, std::ssize(mine));
  if (mine.size() < ids.size())
    for (auto place = ids.begin(); const std::int64_t id : mine) {
      place = std::lower_bound(place, ids.end(), id);
      places_.push_back(place - ids.begin());
    }
  host_ids_ = Tensor::from<std::int64_t>({std::ssize(mine)}, mine);
  ids_ = host_ids_.copy(tables.context());
  if (access == RowAccess::train) select(RowAccess::train);
}

RowSelection Catalogue::select(std::int64_t begin, std::int64_t end, RowAccess access) const {
  std::vector<TableIds> lists(tables_.size());
  lists[table_].ids = ids_.row_range(begin, end);
  lists[table_].host_ids = host_ids_.row_range(begin, end);
  return tables_.select(lists, access);
}

void Catalogue::read(std::int64_t first, Tensor& block) const {
  const std::int64_t n = block.rows();
  require(first >= 0 && first + n <= size(), "expected rows below {}, found {} to {}", size(), first,
          first + n);
  const Handles selected = select(first, first + n, RowAccess::read).tables[table_];
  const EmbeddingTable& table = tables_[table_];
  if (block.dtype() == DType::f32) return table.gather(selected, block);
  narrow(table.gather(selected), block, tables_.context());
}

Tensor Catalogue::gradient() {
  if (!gradient_.defined()) {
    gradient_ = Tensor::empty({size(), tables_[table_].width()}, DType::f32, tables_.context());
    gradient_.fill_zero(tables_.stream());
  }
  return gradient_;
}

Tensor Catalogue::take_gradient() {
  gradient();
  return std::exchange(gradient_, Tensor());
}

}  // namespace hstu
