// One progress line for long work: rewritten in place on a terminal, whose width it fits; elsewhere, separate
// lines at intervals.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/clock.h"

namespace hstu {

// What a progress line says.
struct ProgressLine {
  std::string stage, unit;
  std::int64_t done = 0, total = 0;  // total <= 0: unknown
  double rate = 0;                   // units a second
  std::string detail;

  // At most `columns` characters (0: any number). A narrow line first gives up the rate, then the time left,
  // then its end.
  std::string text(int columns = 0) const;
};

class Progress {
 public:
  // total <= 0: unknown, so no remaining time is shown. `unit` names the counted objects ("events"). `done`:
  // the number done by an earlier process; the rate does not include them.
  Progress(std::string stage, std::int64_t total, std::string unit, std::int64_t done = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Cheap to call often: prints at most a few times a second (terminal) or every ten seconds (otherwise).
  void advance_to(std::int64_t done, const std::string& detail = "");
  // Prints the closing line with the total time and the mean rate.
  void finish(const std::string& detail = "");

 private:
  void print(const std::string& detail, bool last);

  std::string stage_, unit_;
  std::int64_t total_, first_, done_;
  bool terminal_, finished_ = false;
  Clock::time_point start_, printed_;
};

}  // namespace hstu
