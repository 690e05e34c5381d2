#include "hstu/cli/ranks.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/process.h"
#include "hstu/base/terminal.h"
#include "hstu/cli/commands.h"
#include "hstu/comm/local_ranks.h"
#include "hstu/comm/transport.h"
#include "hstu/device/machine.h"

namespace hstu {
namespace {

std::vector<std::string> arguments_of_this_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string word; std::getline(file, word, '\0');) arguments.push_back(word);
  return arguments;
}

}  // namespace

void add_rank_options(CLI::App& command, RankWords& words) {
  command
      .add_option("--ranks", words.ranks,
                  "share every batch among this many processes of this machine; several machines: mpirun, "
                  "srun, torchrun")
      ->check(CLI::Range(1, kMostLocalRanks));
  command.add_option("--join", words.join)->group("");
}

JoinedRanks enter_group(const RankWords& words, const Path& beside) {
  if (words.join.empty() && words.ranks > 1) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    throw ExitStatus{run_local_ranks(words.ranks, program, arguments_of_this_process())};
  }
  JoinedRanks group = join_group(words.join, beside);
  notes_are_muted = group.comm != nullptr && group.comm->rank() > 0;
  if (group.comm == nullptr) return group;
  const int cores = this_machine().usable_cores;
  print_note("{} ranks, started by {}{}\n", group.comm->size(), group.launcher,
             group.on_this_machine > cores ? fmt::format("; {} of them share the {} cores of this machine",
                                                         group.on_this_machine, cores)
                                           : "");
  return group;
}

void as_rank(const JoinedRanks& group, const std::function<void()>& body) {
  if (group.comm == nullptr) return body();
  try {
    body();
  } catch (const EndedRank& error) {
    // hstu --ranks says which rank ended first, and that rank says why.
    if (group.launcher != "hstu --ranks") report("hstu: {}\n", error.what());
    throw ExitStatus{kLostRankStatus};
  } catch (const std::bad_alloc&) {
    if (group.comm->rank() == 0) throw;
    // Allocates no memory and throws nothing.
    std::fprintf(stderr, "hstu: rank %d: %s\n", group.comm->rank(), kOutOfMemory);
    throw ExitStatus{1};
  } catch (const std::exception& error) {
    if (group.comm->rank() == 0) throw;
    report("hstu: rank {}: {}\n", group.comm->rank(), words_of(error));
    throw ExitStatus{dynamic_cast<const UsageError*>(&error) != nullptr ? 2 : 1};
  }
}

int threads_of_rank(int asked, const JoinedRanks& group) {
  if (asked > 0 || group.comm == nullptr) return asked;
  return std::max(1, this_machine().usable_cores / group.on_this_machine);
}

std::string text_of_rank_0(std::string text, Communicator& comm) {
  auto size = static_cast<std::int64_t>(text.size());
  comm.broadcast(std::span(&size, 1), 0);
  text.resize(static_cast<std::size_t>(size));
  comm.broadcast(std::span(text), 0);
  return text;
}

}  // namespace hstu
