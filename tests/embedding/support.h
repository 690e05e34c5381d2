// What the tests of embedding tables share.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "hstu/base/random.h"
#include "hstu/base/threads.h"
#include "hstu/embedding/table.h"

namespace hstu::testing_embedding {

using Ids = std::vector<std::int64_t>;

inline Ids range(std::int64_t begin, std::int64_t end) {
  Ids ids(static_cast<std::size_t>(end - begin));
  std::iota(ids.begin(), ids.end(), begin);
  return ids;
}

inline std::vector<float> train_lookup(EmbeddingTable& table, const Ids& ids) {
  std::vector<float> out(ids.size() * static_cast<std::size_t>(table.config().dim), -7.0f);
  table.gather(ids, table.slots(ids, RowAccess::train), out.data());
  return out;
}

inline std::vector<float> eval_lookup(EmbeddingTable& table, const Ids& ids) {
  std::vector<float> out(ids.size() * static_cast<std::size_t>(table.config().dim), -7.0f);
  table.gather(ids, table.slots(ids, RowAccess::read), out.data());
  return out;
}

// One update of the rows of `ids`, created where they do not exist.
inline void apply_gradients(EmbeddingTable& table, const Ids& ids, const float* gradients,
                            double learning_rate) {
  table.update(table.slots(ids, RowAccess::train), gradients, learning_rate);
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
