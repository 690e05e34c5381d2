#include "hstu/base/progress.h"

#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "hstu/base/terminal.h"
#include "hstu/base/text.h"

namespace hstu {

Progress::Progress(std::string stage, std::int64_t total, std::string unit, std::int64_t done)
    : stage_(std::move(stage)),
      unit_(std::move(unit)),
      total_(total),
      first_(done),
      done_(done),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      printed_(start_) {}

Progress::~Progress() {
  if (!finished_ && terminal_) tell("\n");
}

void Progress::advance_to(std::int64_t done, const std::string& detail) {
  done_ = done;
  const auto now = Clock::now();
  if (seconds_between(printed_, now) < (terminal_ ? 0.2 : 10.0)) return;
  printed_ = now;
  print(detail, false);
}

void Progress::finish(const std::string& detail) {
  print(detail, true);
  finished_ = true;
}

void Progress::print(const std::string& detail, bool last) {
  const double elapsed = seconds_since(start_);
  const double rate = elapsed > 0 ? static_cast<double>(done_ - first_) / elapsed : 0;
  std::string line = fmt::format("{}: {} {}", stage_, with_separators(done_), unit_);
  if (total_ > 0 && !last) {
    line += fmt::format(" of {} ({:.0f} %)", with_separators(total_),
                        100.0 * static_cast<double>(done_) / static_cast<double>(total_));
  }
  line += fmt::format(", {} {}/s", with_separators(static_cast<std::int64_t>(rate)), unit_);
  if (last) line += fmt::format(", {}", human_duration(elapsed));
  if (!last && total_ > 0 && rate > 0) {
    line += fmt::format(", {} left", human_duration(static_cast<double>(total_ - done_) / rate));
  }
  if (!detail.empty()) line += ", " + detail;
  tell("{}{}{}", terminal_ ? "\r\033[K" : "", line, terminal_ && !last ? "" : "\n");
}

}  // namespace hstu
