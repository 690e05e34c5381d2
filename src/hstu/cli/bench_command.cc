#include <memory>

#include "hstu/base/error.h"
#include "hstu/benchmark/data_benchmark.h"
#include "hstu/benchmark/step_benchmark.h"
#include "hstu/cli/commands.h"

namespace hstu {

void add_bench_command(CLI::App& app) {
  struct Words {
    StepBenchmarkOptions step;
    DataBenchmarkOptions data;
    int threads = 0;
  };
  auto words = std::make_shared<Words>();
  CLI::App* const command = app.add_subcommand("bench", "Time parts of hstu on this machine");
  command->require_subcommand(1);
  CLI::App* const step = command->add_subcommand(
      "step", "The training step of the laptop configuration (64 wide, 2 layers, batch 32); one JSON line");
  step->add_option("--steps", words->step.steps, "timed steps")->check(CLI::PositiveNumber);
  step->add_option("--warmup", words->step.warmup, "steps before them")->check(CLI::NonNegativeNumber);
  step->add_option("--seed", words->step.seed, "of batches and model");
  step->add_option("--threads", words->threads, "0: all cores")->check(CLI::NonNegativeNumber);
  step->footer("Example:\n  hstu bench step --threads 2\n./dev bench cpu runs it in turns with PyTorch.");
  step->callback([words] {
    use_threads(words->threads);
    fmt::print("{}\n", benchmark_step(words->step).dump());
  });
  CLI::App* const data = command->add_subcommand(
      "data", "Opening a dataset, its first batch, and assembling batches on one core; one JSON line");
  data->add_option("DATASET", words->data.dataset, "made by hstu prepare")->required();
  data->add_option("--samples", words->data.samples, "at least")->check(CLI::PositiveNumber);
  data->add_option("--batch-size", words->data.batch_size, "samples")->check(CLI::PositiveNumber);
  data->add_option("--history", words->data.history, "events; also those a user must have before an anchor")
      ->check(CLI::PositiveNumber);
  data->footer("Example:\n  hstu bench data dataset --history 1000\n./dev bench data runs it beside NumPy.");
  data->callback([words] { fmt::print("{}\n", benchmark_data(words->data).dump()); });
  add_attention_bench_command(*command);
}

}  // namespace hstu
