// The memory and threads that preparing may use, and the share of each part.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hstu {

struct PrepareOptions {
  std::int64_t memory = std::int64_t{2} << 30;  // bytes of the whole program, approximately
  int threads = 1;

  static constexpr std::int64_t kLeastMemory = std::int64_t{192} << 20;

  // The program's needs without any event: code, Arrow, buffers of files.
  static constexpr std::int64_t kFixed = std::int64_t{96} << 20;
  // A reading thread: pages, and a batch in three forms: decoded, as integers and as events.
  static constexpr std::int64_t kBatchRows = std::int64_t{1} << 16;
  static constexpr std::int64_t kReader = std::int64_t{24} << 20;

  static constexpr std::int64_t kLeastDecoding = std::int64_t{80} << 20;

  std::int64_t free() const { return std::max<std::int64_t>(memory - kFixed, memory / 4); }
  int readers() const {
    return static_cast<int>(std::clamp<std::int64_t>(free() / 4 / kReader, 1, std::max(1, threads)));
  }
  // Pages, decoded batches and dictionaries of all readers together. Files with large pages need more than
  // kReader; the other shares are seldom in use while such a file is read.
  std::int64_t decoding() const { return std::max(free() / 2, kLeastDecoding); }
  // Chunks that wait for their turn: about one row group of a million events per reader.
  std::int64_t queue() const { return std::min(free() / 8, readers() * (std::int64_t{16} << 20)); }
  std::int64_t sorter() const { return free() / 3; }     // tables to be sorted
  std::int64_t filters() const { return free() / 4; }    // items that are counted, events of a user
  std::int64_t distinct() const { return free() / 32; }  // each of two sets of distinct items
  std::int64_t names() const { return free() / 16; }     // of users, and of items
  std::int64_t attribute() const { return free() / 8; }  // each item attribute
};

}  // namespace hstu
