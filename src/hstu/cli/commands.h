// The subcommands of `hstu`, one file each. add_* declares options and help, and sets the callback.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "hstu/base/thread_limit.h"

namespace hstu {

void add_train_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_serve_command(CLI::App& app);
void add_publish_command(CLI::App& app);
void add_follow_command(CLI::App& app);
void add_ann_recall_command(CLI::App& app);
void add_export_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_tokenize_command(CLI::App& app);
void add_plan_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_sweep_command(CLI::App& app);
void add_mlperf_command(CLI::App& app);
void add_suite_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_attention_bench_command(CLI::App& bench);
void add_serve_bench_command(CLI::App& bench);
void add_score_bench_command(CLI::App& bench);
void add_config_command(CLI::App& app);

// `prepare` and `generate` are in the separate program hstu-prepare, because only that one links Arrow;
// they are declared here for --help.
void add_events_commands(CLI::App& app);
// For `hstu prepare` or `hstu generate`, and for the completion of their words, starts hstu-prepare with
// `words`, those behind the program's name; otherwise returns. Throws Error if the program cannot be started.
void hand_over_events_commands(const std::vector<std::string>& words);

// Thrown by a command that has printed its messages, to end the program with this exit status.
struct ExitStatus {
  int value;
};
inline constexpr int kInterrupted = 75;  // saved, can be resumed; EX_TEMPFAIL of sysexits.h

inline constexpr const char* kOutOfMemory =
    "out of memory: decrease training.batch_size, data.history_length or the tables' width";

// Uses `threads` threads, or all cores that this process may use if it is 0.
void use_threads(int threads);

}  // namespace hstu
