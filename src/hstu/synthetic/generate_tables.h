// The columns of the generator's files, except truth.json.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/columns/parquet_file.h"
#include "hstu/synthetic/generate_catalogue.h"
#include "hstu/synthetic/generate_truth.h"
#include "hstu/synthetic/generate_user.h"

namespace hstu {

// multi_event.parquet, one row group per block of users.
class MultiEventFile {
 public:
  explicit MultiEventFile(const Path& path);
  // users[i] has the events of user first_uid + i.
  void write(const Catalogue& catalogue, std::uint32_t first_uid,
             std::span<const std::vector<GeneratedEvent>> users);
  void close() { file_.close(); }

 private:
  ParquetFile file_;
};

// Rows by ascending item id; an item's own artist or album comes after its extra listings, because readers
// that keep one row per item keep the last.
void write_artist_mapping(const Path& path, const Catalogue& catalogue);
void write_album_mapping(const Path& path, const Catalogue& catalogue);

void write_last_day(const Path& path, const Catalogue& catalogue, std::span<const TrueListen> listens);

}  // namespace hstu
