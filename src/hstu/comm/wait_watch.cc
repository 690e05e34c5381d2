#include "hstu/comm/wait_watch.h"

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hstu/base/stack.h"
#include "hstu/base/terminal.h"
#include "hstu/comm/transport.h"

namespace hstu {

void WaitWatch::check(std::uint64_t progress, const std::function<std::vector<int>()>& ranks) {
  if (progress != progress_) {
    progress_ = progress;
    moved_ = Clock::now();
  }
  const Patience& patience = comm_.patience();
  const double seconds = seconds_since(moved_);
  const bool gives_up = seconds >= patience.give_up_seconds;
  if (!gives_up && (warned_ || seconds < patience.warn_seconds)) return;
  std::vector<int> others = ranks();
  for (int& rank : others) rank = comm_.world_rank(rank);
  const std::string words = fmt::format(
      "rank {}{} has waited {:.0f} s for rank {} in {} {}{}, stage {}", comm_.world_rank(comm_.rank()),
      comm_.group_text().empty() ? fmt::format(" of {}", comm_.size()) : comm_.group_text(), seconds,
      fmt::join(others, ", "), activity_.collective, activity_.collectives,
      activity_.step < 0 ? "" : fmt::format(" of step {}", activity_.step + 1), activity_.stage);
  if (gives_up) {
    throw LostRank(fmt::format(
        "{}: it has ended, hangs or was stopped. If it only takes long, raise ranks.timeout", words));
  }
  report("\nWARNING: {}; gives up after {:.0f} s. Stack:\n{}", words, patience.give_up_seconds,
         stack_of_this_thread());
  warned_ = true;
}

}  // namespace hstu
