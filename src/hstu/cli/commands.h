// The subcommands of `hstu`, one file each. add_* declares words and help; what runs is set as the callback.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

void add_train_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_attention_bench_command(CLI::App& bench);
void add_config_command(CLI::App& app);

// `prepare` and `generate` belong to the program hstu-prepare beside this one, which alone links Arrow;
// declared here for --help only.
void add_events_commands(CLI::App& app);
// Starts hstu-prepare with the words behind `hstu prepare` or `hstu generate` when argv asks for one of them;
// returns otherwise. Throws Error when the program is not there.
void hand_over_events_commands(char** argv);

// Thrown by a command that has said all there is to say, to end the program with this exit status.
struct ExitStatus {
  int value;
};
inline constexpr int kInterrupted = 75;  // saved and to be gone on with; EX_TEMPFAIL of sysexits.h

// Uses --threads, or all cores this process may use when it is 0.
void use_threads(int threads);

}  // namespace hstu
