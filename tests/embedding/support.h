// What the tests of embedding tables share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "hstu/base/random.h"
#include "hstu/base/threads.h"
#include "hstu/embedding/table.h"
#include "hstu/tensor/tensor.h"
#include "support/table_rows.h"

namespace hstu::testing_embedding {

using Ids = std::vector<std::int64_t>;

inline Tensor tensor(const Ids& ids) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(ids.size())}, ids);
}

inline Ids range(std::int64_t begin, std::int64_t end) {
  Ids ids(static_cast<std::size_t>(end - begin));
  std::iota(ids.begin(), ids.end(), begin);
  return ids;
}

// Distinct ids, some of them outside the table.
inline Ids some_ids(RandomStream& random, std::int64_t rows, std::size_t n) {
  Ids ids;
  for (std::size_t i = 0; i < n; ++i)
    ids.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows + 4))) - 2);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

inline std::vector<float> look_up(EmbeddingTable& table, const Ids& ids, RowAccess access) {
  return rows_of(table, table.select(ids, access));
}
inline std::vector<float> train_lookup(EmbeddingTable& table, const Ids& ids) {
  return look_up(table, ids, RowAccess::train);
}
inline std::vector<float> eval_lookup(EmbeddingTable& table, const Ids& ids) {
  return look_up(table, ids, RowAccess::read);
}

struct Row {
  std::int64_t id;
  std::vector<float> values, state;
};
// Every existing row by ascending id.
inline std::vector<Row> rows_by_id(const EmbeddingTable& table) {
  std::vector<Row> rows;
  for (const EmbeddingTable::Place& place : table.places_by_id()) {
    Row& row = rows.emplace_back(Row{place.id, {}, {}});
    row.values.resize(static_cast<std::size_t>(table.config().dim));
    row.state.resize(static_cast<std::size_t>(table.state_width()));
    table.read(std::span(&place, 1), row.values.data(), row.state.data());
  }
  return rows;
}

inline std::vector<float> random_values(std::size_t n, std::uint64_t key) {
  RandomStream random{.key = key};
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random.normal());
  return values;
}

// Sets the number of threads for one scope.
class Threads {
 public:
  explicit Threads(int n) : before_(threads()) { set_threads(n); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace hstu::testing_embedding
