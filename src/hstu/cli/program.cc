#include "hstu/cli/program.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "hstu/arguments/parse.h"
#include "hstu/base/error.h"
#include "hstu/base/process.h"
#include "hstu/base/terminal.h"
#include "hstu/base/threads.h"
#include "hstu/base/version.h"
#include "hstu/cli/commands.h"
#include "hstu/device/machine.h"

namespace hstu {
namespace {

constexpr int kFailed = 1, kUsage = 2;

#ifdef HSTU_WITH_CUDA
constexpr const char* kCuda = "with CUDA";
#else
constexpr const char* kCuda = "without CUDA";
#endif
#ifdef __clang__
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

constexpr const char* kDescription =
    "hstu trains HSTU generative recommenders from raw events to an evaluated model.\n"
    "\n"
    "From events to a result:\n"
    "  hstu generate yambda --users 500 --days 42 --items 1000 --seed 1 --output events\n"
    "  hstu prepare yambda --input events --output dataset --test-days 0 --min-history 0\n"
    "  hstu train configs/quickstart.toml --set data.path=dataset --output run\n"
    "  hstu eval run\n"
    "  hstu predict run --requests requests.csv --output scores.csv\n"
    "\n"
    "hstu help COMMAND describes a command.";

std::string version_and_build() {
  return fmt::format("hstu {}, built by {} {}", version(), kCompiler, kCuda);
}

int dispatch(int argc, char** argv) {
  const std::vector<std::string> words = words_of_command_line(argc, argv);
  hand_over_events_commands(words);
  CLI::App app{kDescription, "hstu"};
  app.set_version_flag("--version", version_and_build());
  app.require_subcommand(1);
  add_events_commands(app);
  add_plan_command(app);
  add_train_command(app);
  add_eval_command(app);
  add_predict_command(app);
  add_serve_command(app);
  add_publish_command(app);
  add_follow_command(app);
  add_export_command(app);
  add_ann_recall_command(app);
  add_import_command(app);
  add_tokenize_command(app);
  add_inspect_command(app);
  add_report_command(app);
  add_compare_command(app);
  add_sweep_command(app);
  add_mlperf_command(app);
  add_suite_command(app);
  add_config_command(app);
  add_bench_command(app);
  add_doctor_command(app);
  return parse_command_line(app, words, "hstu " + version());
}

}  // namespace

void use_threads(int threads) {
  constexpr int kFew = 64, kOnACore = 4;
  const int cores = this_machine().usable_cores, most = std::max(kFew, kOnACore * cores);
  if (threads > most) {
    print_note(
        "note: --threads {}: {} are used, because this machine has {} cores and further ones would only "
        "wait; "
        "results do not depend on it\n",
        threads, most, cores);
  }
  set_threads(threads > 0 ? std::min(threads, most) : cores);
  check_threads_start();
}

int run_program(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const ExitStatus& status) {
    return status.value;
  } catch (const UsageError& error) {
    print_note("hstu: {}\n", error.what());
    return kUsage;
  } catch (const std::bad_alloc&) {
    // Allocates no memory and throws nothing.
    std::fprintf(stderr, "hstu: %s\n", kOutOfMemory);
    return kFailed;
  } catch (const std::exception& error) {
    print_note("hstu: {}\n", words_of(error));
    return kFailed;
  }
}

}  // namespace hstu
