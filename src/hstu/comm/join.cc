#include "hstu/comm/join.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/comm/message_group.h"
#include "hstu/comm/mpi_transport.h"
#include "hstu/comm/tcp_transport.h"

namespace hstu {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

int number(const char* name, int bound) {
  const std::string text = variable(name).value_or("");
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value >= bound)
    fail_usage("the launcher's variable {} is \"{}\", expected a number in [0, {})", name, text, bound);
  return value;
}

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kMostRanks = 1 << 20, kMostPorts = 1 << 16;

JoinedRanks over_tcp(Meeting meeting, std::string launcher, int on_this_machine) {
  if (meeting.ranks == 1) return {};
  return {message_group(tcp_transport(std::move(meeting))), std::move(launcher), on_this_machine};
}

JoinedRanks join_local(const std::string& join) {
  int rank = 0, ranks = 0, port = 0, listener = 0, joining = 0, token = 0;
  if (std::sscanf(join.c_str(), "%d/%d/%d/%d/%d/%d", &rank, &ranks, &port, &listener, &joining, &token) != 6)
    fail_usage("--join is given by hstu --ranks alone: leave it out");
  const Socket until_joined(joining), of_token(token);
  const auto known = token_of_descriptor(token);
  if (!known) fail_usage("--join is given by hstu --ranks alone: leave it out");
  return over_tcp({.rank = rank,
                   .ranks = ranks,
                   .host = kLoopback,
                   .port = port,
                   .token = *known,
                   .listener = Socket(listener)},
                  "hstu --ranks", ranks);
}

// For launchers that give a process no secret: that of the environment, or of a file that all ranks see.
JoinedRanks join_launched(Meeting meeting, const char* launcher, int on_this_machine, const Path& beside) {
  if (on_this_machine == meeting.ranks) meeting.host = kLoopback;
  if (const auto text = variable("HSTU_TOKEN"); text && !text->empty()) {
    meeting.token = token_of_text(*text);
  } else {
    const Path near =
        std::filesystem::absolute((beside.empty() ? "hstu" : beside) / ".").lexically_normal().parent_path();
    meeting.token_file =
        near.parent_path() / fmt::format(".{}.ranks_{}", near.filename().string(), meeting.port);
  }
  return over_tcp(std::move(meeting), launcher, on_this_machine);
}

// A launcher that sets one of these variables sets all: without the others, each rank would train alone.
void refuse_half_set() {
  const auto refuse = [](const char* missing, const char* set) {
    fail_usage(
        "the launcher's variable {} is missing, and {} is \"{}\": set {} for every rank, or unset {} to "
        "train "
        "on this process alone",
        missing, set, *variable(set), missing, set);
  };
  const bool many = variable("WORLD_SIZE").value_or("1") != "1";
  if (many || (variable("RANK") && !variable("WORLD_SIZE"))) {
    const char* const set = many ? "WORLD_SIZE" : "RANK";
    for (const char* const name : {"WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"})
      if (!variable(name)) refuse(name, set);
  }
  if (!variable("SLURM_STEP_ID")) return;
  if (variable("SLURM_NTASKS").value_or("1") != "1" && !variable("SLURM_PROCID"))
    refuse("SLURM_PROCID", "SLURM_NTASKS");
  if (variable("SLURM_PROCID").value_or("0") != "0" && !variable("SLURM_NTASKS"))
    refuse("SLURM_NTASKS", "SLURM_PROCID");
}

JoinedRanks join_torchrun(const Path& beside) {
  const int ranks = number("WORLD_SIZE", kMostRanks), port = number("MASTER_PORT", kMostPorts - 1) + 1;
  const int local = variable("LOCAL_WORLD_SIZE") ? number("LOCAL_WORLD_SIZE", kMostRanks) : 1;
  return join_launched(
      {.rank = number("RANK", ranks), .ranks = ranks, .host = *variable("MASTER_ADDR"), .port = port},
      "torchrun", local, beside);
}

// The first name of a list such as "node[07-09,12],other".
std::string first_host(const std::string& hosts) {
  const std::size_t bracket = hosts.find_first_of("[,");
  if (bracket == std::string::npos || hosts[bracket] == ',') return hosts.substr(0, bracket);
  const std::size_t end = hosts.find_first_of(",-]", bracket);
  return hosts.substr(0, bracket) + hosts.substr(bracket + 1, end - bracket - 1);
}

JoinedRanks join_slurm(const Path& beside) {
  const int ranks = number("SLURM_NTASKS", kMostRanks);
  const int job = number("SLURM_JOB_ID", std::numeric_limits<int>::max());
  const int port = 20000 + job % 20000;  // the same for all, and probably another one for other jobs
  const std::string per_node = variable("SLURM_STEP_TASKS_PER_NODE").value_or("1");
  const int local = std::max(1, std::atoi(per_node.c_str()));
  return join_launched({.rank = number("SLURM_PROCID", ranks),
                        .ranks = ranks,
                        .host = first_host(variable("SLURM_STEP_NODELIST").value_or("localhost")),
                        .port = port},
                       "SLURM", local, beside);
}

JoinedRanks join_mpi() {
  MpiRanks mpi = mpi_transport();
  if (mpi.transport->size() == 1) return {};
  return {message_group(std::move(mpi.transport)), "MPI", mpi.on_this_machine};
}

}  // namespace

std::string join_argument(const LocalRank& local) {
  return fmt::format("--join={}/{}/{}/{}/{}/{}", local.rank, local.ranks, local.port, local.listener,
                     local.joining, local.token);
}

JoinedRanks join_group(const std::string& join, const Path& beside) {
  if (!join.empty()) return join_local(join);
  if (variable("OMPI_COMM_WORLD_SIZE") || variable("PMI_SIZE")) return join_mpi();
  if (variable("RANK") && variable("WORLD_SIZE") && variable("MASTER_ADDR") && variable("MASTER_PORT"))
    return join_torchrun(beside);
  if (variable("SLURM_PROCID") && variable("SLURM_STEP_ID") && variable("SLURM_NTASKS"))
    return join_slurm(beside);
  if (variable("PMIX_RANK")) return join_mpi();
  refuse_half_set();
  return {};
}

}  // namespace hstu
