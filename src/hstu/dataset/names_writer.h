// Writes the names of ids into a dataset (names.h reads them).
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// Collects the names of hashed ids, in any order and repeatedly, in bounded memory: beyond `memory` bytes,
// sorted names are spilled into `folder` and merged at the end.
class NameCollector {
 public:
  // The folder is created when it is needed and removed by the destructor; nothing else may use it.
  NameCollector(Path folder, std::int64_t memory);
  ~NameCollector();
  NameCollector(const NameCollector&) = delete;
  NameCollector& operator=(const NameCollector&) = delete;

  // `id` is id_of_text(name).
  void add(std::int64_t id, std::string_view name);
  // Writes and describes the names of `of` ("user" or "item"). Returns the number of collisions: names whose
  // id another name, which is kept, has too. Call it once, at the end.
  std::int64_t write(const Path& dataset, const std::string& of, Manifest& manifest);

 private:
  using Name = std::pair<std::int64_t, std::string>;
  std::vector<Name> take_sorted();
  void spill();

  Path folder_;
  std::int64_t memory_, bytes_ = 0;
  std::unordered_map<std::int64_t, std::string> names_;
  std::set<Name> collided_;  // names whose id is in names_ with another name
  std::vector<Path> runs_;   // ascending by id and name, each name once in a file
};

// Writes and describes the names of the codes 1, 2, ..., K of `of`; all are different.
void write_code_names(const Path& dataset, const std::string& of, std::span<const std::string> names,
                      Manifest& manifest);

}  // namespace hstu
