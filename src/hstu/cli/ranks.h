// The ranks of a command: --ranks N, or a launcher that started this process as one of several.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "hstu/comm/join.h"

namespace hstu {

inline constexpr int kMostLocalRanks = 1024;

struct RankWords {
  int ranks = 0;     // --ranks
  std::string join;  // --join, which --ranks gives to each process that it starts
};

void add_rank_options(CLI::App& command, RankWords& words);

// With --ranks N starts N processes with the arguments of this one, waits for them, and throws ExitStatus.
// Otherwise joins the launcher's group, or none; `beside` as join_group() takes it. In ranks other than 0
// notes are muted from then on.
JoinedRanks enter_group(const RankWords& words, const Path& beside);

// Runs `body`. A rank other than 0 reports its errors under its number; one that only follows another's end
// is silent.
void as_rank(const JoinedRanks& group, const std::function<void()>& body);

// The threads of each rank: the cores of the machine divided by its ranks. `asked` > 0: that many.
int threads_of_rank(int asked, const JoinedRanks& group);

// The text of rank 0, on every rank.
std::string text_of_rank_0(std::string text, Communicator& comm);

}  // namespace hstu
