#include "hstu/base/progress.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "hstu/base/terminal.h"
#include "hstu/base/text.h"

namespace hstu {

std::string ProgressLine::text(int columns) const {
  std::string line = fmt::format("{}: {} {}", stage, with_separators(done), unit);
  if (total > 0) {
    line += fmt::format(" of {} ({:.0f} %)", with_separators(total),
                        100.0 * static_cast<double>(done) / static_cast<double>(total));
  }
  const std::string speed = fmt::format(", {} {}/s", with_separators(static_cast<std::int64_t>(rate)), unit);
  const std::string left =
      total > 0 && rate > 0
          ? fmt::format(", {} left", human_duration(static_cast<double>(total - done) / rate))
          : "";
  const std::string end = detail.empty() ? "" : ", " + detail;
  const auto width = static_cast<std::size_t>(columns);
  const auto fits = [&](std::size_t size) { return columns <= 0 || size <= width; };
  if (fits(line.size() + speed.size() + left.size() + end.size())) return line + speed + left + end;
  line += fits(line.size() + left.size() + end.size()) ? left + end : end;
  return line.substr(0, width);
}

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
  if (!finished_ && terminal_) print_note("\n");
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
  if (terminal_ && !notes_are_muted) write_to_terminal("\r\033[K");  // in the place of the last line
  if (last) {
    const std::string took = human_duration(elapsed) + (detail.empty() ? "" : ", " + detail);
    print_note("{}\n", ProgressLine{stage_, unit_, done_, 0, rate, took}.text());
    return;
  }
  const ProgressLine line{stage_, unit_, done_, total_, rate, detail};
  // One column stays free: a line as wide as the terminal would move the cursor to the next.
  if (terminal_)
    print_note("{}", line.text(std::max(0, terminal_columns() - 1)));
  else
    print_note("{}\n", line.text());
}

}  // namespace hstu
