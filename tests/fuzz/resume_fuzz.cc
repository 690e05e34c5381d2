// Resuming with any metrics.jsonl: rejected with its name, or rewound to the line of the checkpoint, after
// which it is accepted again.
#include <unistd.h>

#include "fuzz/harness.h"
#include "hstu/base/json_lines.h"
#include "hstu/run/resume.h"
#include "hstu/run/state.h"

namespace {

using namespace hstu;

// With a checkpoint of step 4, made once.
const RunFolder& run_folder() {
  static const RunFolder folder = [] {
    RunFolder made{std::filesystem::temp_directory_path() / fmt::format("hstu_fuzz_run_{}", ::getpid())};
    std::filesystem::remove_all(made.path);
    std::filesystem::create_directories(made.checkpoints());
    RunState state;
    state.step = 4;
    save_run(made.checkpoints(), {.dataset = "d", .config = to_toml(RunOptions{})}, state, "steps", {});
    return made;
  }();
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const RunFolder& run = run_folder();
  static const Checkpoint checkpoint = *checkpoint_to_resume(run, -1);
  const Path metrics = fuzz::plain_file(run.metrics(), fuzz::text_of(data, size));
  fuzz::accept_or_refuse([&] {
    const RunFolder without_checkpoints{fuzz::fresh_folder()};
    fuzz::plain_file(without_checkpoints.metrics(), fuzz::text_of(data, size));
    checkpoint_to_resume(without_checkpoints, -1);
  });
  return fuzz::accept_or_refuse([&] {
    const LogRecord before = read_log(metrics, checkpoint);
    rewind_log(metrics, checkpoint);
    const LogRecord after = read_log(metrics, checkpoint);
    require(after.begun && !after.ended && after.training_seconds == before.training_seconds,
            "a rewound log that is another one");
    require(read_json_lines(metrics).back().at("event") == "checkpoint", "a line after that of the save");
  });
}
