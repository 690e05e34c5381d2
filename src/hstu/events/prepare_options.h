// How much of the machine preparing may use, and what each part of it gets.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hstu {

struct PrepareOptions {
  std::int64_t memory = std::int64_t{2} << 30;  // bytes of the whole program, about
  int threads = 1;

  static constexpr std::int64_t kLeastMemory = std::int64_t{192} << 20;

  // What the program needs before it holds a single event: code, Arrow, buffers of files.
  static constexpr std::int64_t kFixed = std::int64_t{96} << 20;
  // A thread that reads: pages, a batch as it was decoded, as integers and as events.
  static constexpr std::int64_t kBatchRows = std::int64_t{1} << 16;
  static constexpr std::int64_t kReader = std::int64_t{24} << 20;

  std::int64_t free() const { return std::max<std::int64_t>(memory - kFixed, memory / 4); }
  int readers() const {
    return static_cast<int>(std::clamp<std::int64_t>(free() / 4 / kReader, 1, std::max(1, threads)));
  }
  // Chunks that wait for their turn: about a row group of a million events for every reader.
  std::int64_t queue() const { return std::min(free() / 8, readers() * (std::int64_t{16} << 20)); }
  std::int64_t sorter() const { return free() / 3; }     // tables to be sorted
  std::int64_t distinct() const { return free() / 32; }  // each of two sets of different items
  std::int64_t attribute() const { return free() / 8; }  // each item attribute
};

}  // namespace hstu
