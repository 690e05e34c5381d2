#include "hstu/experiment/command.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/comm/transport.h"
#include "hstu/experiment/over_ranks.h"
#include "hstu/run/resume.h"

namespace hstu {
namespace {

constexpr std::int64_t kNone = -1;
constexpr std::string_view kCommandStage = "decision of rank 0";

std::int64_t word_of_rank_0(std::int64_t word, Communicator& comm) {
  comm.broadcast(std::span(&word, 1), 0);
  return word;
}

}  // namespace

Patience patience_of(const RanksSection& ranks) {
  return {.warn_seconds = std::min(Patience().warn_seconds, ranks.timeout / 2),
          .give_up_seconds = ranks.timeout};
}

void announce(Command command, Communicator& comm) {
  comm.enter(kCommandStage);
  word_of_rank_0(static_cast<std::int64_t>(command), comm);
}
Command next_command(Communicator& comm) {
  comm.enter(kCommandStage);
  return static_cast<Command>(word_of_rank_0(0, comm));
}

bool any_stops(const std::atomic<bool>* stop, Communicator& comm) {
  comm.enter("signals");
  return comm.sum<std::int64_t>(stop != nullptr && *stop ? 1 : 0) > 0;
}

std::optional<Checkpoint> same_checkpoint(std::optional<Checkpoint> of_rank_0, const RunFolder& folder,
                                          Communicator& comm) {
  const std::int64_t step = word_of_rank_0(of_rank_0 ? of_rank_0->step() : kNone, comm);
  if (comm.rank() == 0 || step == kNone) return of_rank_0;
  return checkpoint_to_resume(folder, step);
}

void check_agreement(const Experiment& experiment, const std::string& version, std::int64_t step,
                     Communicator& comm) {
  if (comm.size() == 1) return;
  comm.enter("agreement");
  const Json facts{{"program version", version},
                   {"configuration", config_hash(to_toml(experiment.options()))},
                   {"dataset", experiment.dataset().manifest().id},
                   {"device", experiment.device().device.is_host() ? "host" : "gpu"},
                   {"step", step}};
  const std::vector<Json> ranks = gather(std::vector{facts}, comm);
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    for (const auto& [name, expected] : ranks.front().items()) {
      if (ranks[r].at(name) == expected) continue;
      if (comm.rank() > 0) throw EndedRank("the ranks disagree, as rank 0 reports");
      fail_usage(
          "rank {} has another {} than rank 0: {}, expected {}: start all ranks with the same program, "
          "arguments and files",
          r, name, ranks[r].at(name).dump(), expected.dump());
    }
  }
}

}  // namespace hstu
