#include <memory>

#include "hstu/arguments/size.h"
#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/benchmark/balance_benchmark.h"
#include "hstu/benchmark/catalogue_benchmark.h"
#include "hstu/benchmark/data_benchmark.h"
#include "hstu/benchmark/embedding_benchmark.h"
#include "hstu/benchmark/embedding_suite.h"
#include "hstu/benchmark/layer_sweep.h"
#include "hstu/benchmark/search_benchmark.h"
#include "hstu/benchmark/stage_table.h"
#include "hstu/benchmark/step_benchmark.h"
#include "hstu/benchmark/stream_benchmark.h"
#include "hstu/cli/commands.h"
#include "hstu/kernels/loops.h"

namespace hstu {

namespace {

double value_of(const Json& result, const char* key) {
  return result.at(key).get<double>();
}

std::string step_text(const Json& result) {
  return fmt::format(
      "a step: {:.2f} ms ({:.2f} to {:.2f}), {:.0f} samples/s, {:.0f} tokens/s, {:.3g} TFLOP/s by the "
      "published "
      "formula, {:.3g} computed\n\n{}",
      value_of(result, "median_ms"), value_of(result, "p10_ms"), value_of(result, "p90_ms"),
      value_of(result, "samples_per_s"), value_of(result, "tokens_per_s"), value_of(result, "tflops"),
      value_of(result, "computed_tflops"), stage_table(result.at("stages")));
}

std::string regime_text(const char* name, const Json& times) {
  return fmt::format(
      "{}: forward {:.2f} ms, backward {:.2f} ms, both {:.2f} ms ({:.2f} to {:.2f}), {:.4g} TFLOP/s", name,
      value_of(times, "forward_ms"), value_of(times, "backward_ms"), value_of(times, "total_ms"),
      value_of(times, "total_ms_min"), value_of(times, "total_ms_max"), value_of(times, "tflops"));
}

std::string layer_text(const Json& result) {
  const Json& share = result.at("share_of_peak");
  return fmt::format(
      "{}\n{}{}\n{:.1f} GiB at the peak\n\n{}", regime_text("burst", result.at("burst")),
      regime_text("sustained", result.at("sustained")),
      share.is_null() ? "" : fmt::format(" ({:.1f} % of the GPU's peak)", 100 * share.get<double>()),
      value_of(result, "peak_gib"), stage_table(result.at("stages")));
}

}  // namespace

namespace {

void add_stream_command(CLI::App& bench) {
  struct Words {
    StreamOptions stream;
    int threads = 1;
  };
  auto words = std::make_shared<Words>();
  StreamOptions& o = words->stream;
  CLI::App* const stream = bench.add_subcommand(
      "stream",
      "Run a long stream of ids through a table that evicts, and compare its hits with a simulation");
  stream->add_option("--events", o.events, "of the stream")->check(CLI::PositiveNumber);
  stream->add_option("--step", o.step, "events of a step")->check(CLI::PositiveNumber);
  stream->add_option("--ids", o.ids, "that events are drawn from")->check(CLI::PositiveNumber);
  stream->add_option("--capacity", o.capacity, "rows of the table")->check(CLI::PositiveNumber);
  stream->add_option("--dim", o.dim, "values of a row")->check(CLI::Range(1, 1 << 16));
  stream->add_option("--power", o.power, "of the power law of the ids")->check(CLI::Range(0.0, 4.0));
  stream->add_option("--seed", o.seed, "of the ids");
  stream->add_option("--threads", words->threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  stream->footer("Prints one JSON line. Example:\n  hstu bench stream --events 2000000000 --ids 100000000");
  stream->callback([words] {
    use_threads(words->threads);
    Progress progress("stream", words->stream.events, "events");
    const Json result = stream_ids(words->stream, [&](std::int64_t events) { progress.advance_to(events); });
    progress.finish();
    fmt::print("{}\n", result.dump());
  });
}

void add_catalogue_command(CLI::App& bench) {
  struct Words {
    CatalogueBenchmarkOptions catalogue;
    std::string precision = "bf16";
    int threads = 0;
  };
  auto words = std::make_shared<Words>();
  CatalogueBenchmarkOptions& o = words->catalogue;
  CLI::App* const catalogue = bench.add_subcommand(
      "catalogue",
      "Measure the softmax over a catalogue, exact first items and ranks among all items; one JSON line");
  catalogue->add_option("--items", o.items, "of the catalogue")->check(at_least(2));
  catalogue->add_option("--width", o.width, "values of a row")->check(CLI::Range(1, 1 << 12));
  catalogue->add_option("--positions", o.positions, "of the softmax; 0: leave it out")->check(at_least(0));
  catalogue->add_option("--queries", o.queries, "of first items and ranks; 0: leave them out")
      ->check(at_least(0));
  catalogue->add_option("--top", o.k, "items to find for each query")->check(at_least(1));
  catalogue->add_option("--excluded", o.excluded, "items of each query")->check(at_least(0));
  catalogue->add_option("--rounds", o.rounds, "timed rounds")->check(at_least(1));
  catalogue->add_option("--device", o.device, "host, cuda, cuda:N or auto");
  catalogue->add_option("--precision", words->precision, list_of(kPrecisions));
  catalogue->add_option("--threads", words->threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  catalogue->footer("Example:\n  hstu bench catalogue --items 1000000 --positions 8192 --queries 0");
  catalogue->callback([words] {
    use_threads(words->threads);
    words->catalogue.precision = parse_word(kPrecisions, words->precision, "precision");
    fmt::print("{}\n", benchmark_catalogue(words->catalogue).dump());
  });
}

void add_search_command(CLI::App& bench) {
  struct Words {
    SearchBenchmarkOptions search;
    std::string precision = "bf16";
    int threads = 0;
  };
  auto words = std::make_shared<Words>();
  SearchBenchmarkOptions& o = words->search;
  CLI::App* const search = bench.add_subcommand(
      "search", "Measure the beam search of the model of semantic ids, by level; one JSON line");
  search->add_option("--users", o.users, "of the batch")->check(at_least(1));
  search->add_option("--tokens", o.tokens, "of each history: codes of its items")->check(at_least(1));
  search->add_option("--beam", o.beam, "prefixes that are kept")->check(at_least(1));
  search->add_option("--levels", o.levels, "codes of an item")->check(CLI::Range(1, 16));
  search->add_option("--codes", o.codes, "of each level")->check(CLI::Range(1, 1 << 16));
  search->add_option("--items", o.items, "with random codes")->check(at_least(1));
  search->add_option("--layers", o.layers)->check(at_least(1));
  search->add_option("--heads", o.heads)->check(at_least(1));
  search->add_option("--head-dim", o.head_dim)->check(at_least(1));
  search->add_option("--rounds", o.rounds, "timed rounds")->check(at_least(1));
  search->add_option("--device", o.device, "host, cuda, cuda:N or auto");
  search->add_option("--precision", words->precision, list_of(kPrecisions));
  search->add_option("--threads", words->threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  search->footer("Example:\n  hstu bench search --users 16 --tokens 2048");
  search->callback([words] {
    use_threads(words->threads);
    words->search.precision = parse_word(kPrecisions, words->precision, "precision");
    fmt::print("{}\n", benchmark_search(words->search).dump());
  });
}

void add_balance_command(CLI::App& bench) {
  struct Words {
    BalanceBenchmarkOptions balance;
    bool json = false;
  };
  auto words = std::make_shared<Words>();
  BalanceBenchmarkOptions& o = words->balance;
  CLI::App* const balance = bench.add_subcommand(
      "balance", "Estimate the attention time of each rank under every division of a batch; or measure it");
  balance->add_option("--ranks", o.ranks)->check(CLI::Range(1, 4096));
  balance->add_option("--samples", o.samples, "of a rank")->check(CLI::Range(1, 1 << 16));
  balance->add_option("--batches", o.batches)->check(CLI::Range(1, 10'000));
  balance->add_option("--lengths", o.lengths,
                      "fixed, uniform, normal, zipf (1.2) or lognormal, up to --longest");
  balance->add_option("--longest", o.longest, "items of a sample, each with an action")
      ->check(CLI::Range(1, 1 << 20));
  balance->add_option("--contexts", o.contexts, "tokens before them")->check(CLI::Range(0, 1 << 16));
  balance->add_option("--layers", o.layers)->check(at_least(1));
  balance->add_option("--heads", o.heads)->check(at_least(1));
  balance->add_option("--head-dim", o.head_dim)->check(at_least(1));
  balance->add_option("--dim", o.dim, "width of the residual stream")->check(at_least(1));
  balance->add_option("--tflops", o.tflops, "of attention, forward and backward")->check(CLI::PositiveNumber);
  balance->add_option("--seed", o.seed, "of the lengths");
  balance->add_flag("--measure", o.measure,
                    "on a GPU: also time attention of each rank of the first batch, forward and backward");
  balance->add_flag("--json", words->json, "one JSON line in place of the tables");
  balance->footer(
      "slices: equal numbers of samples in order; nvidia, work: as training.balance divides. Ideal: the "
      "mean\n"
      "over ranks. Times are attention's FLOPs over --tflops; with --measure the kernels' are beside them.\n"
      "Example:\n  hstu bench balance --ranks 16");
  balance->callback([words] {
    const Json result = benchmark_balance(words->balance);
    fmt::print("{}\n", words->json ? result.dump() : balance_text(result));
  });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  struct Words {
    StepBenchmarkOptions step;
    DataBenchmarkOptions data;
    LayerBenchmarkOptions layer;
    Path sweep;
    std::vector<std::int64_t> sweep_lengths = LayerSweep().lengths;
    EmbeddingBenchmarkOptions embedding;
    EmbeddingSuiteOptions suite;
    std::string evict = "lru";
    std::string gate = "product", precision = "bf16", attention = "auto", loops;
    int threads = 0;
    bool json = false;
  };
  auto words = std::make_shared<Words>();
  const auto add_json = [words](CLI::App& of) {
    of.add_flag("--json", words->json, "one JSON line in place of the table");
  };
  CLI::App* const command = app.add_subcommand("bench", "Measure parts of hstu on this machine");
  command->require_subcommand(1);
  CLI::App* const step = command->add_subcommand(
      "step", "Measure a training step of the laptop configuration (width 64, 2 layers, batch 32), by stage");
  step->add_option("--steps", words->step.steps, "timed steps")->check(at_least(1));
  step->add_option("--warmup", words->step.warmup, "steps before the timed ones")->check(at_least(0));
  step->add_option("--seed", words->step.seed, "seed of batches and model");
  step->add_option("--device", words->step.device, "host, cuda, cuda:N or auto");
  step->add_option("--threads", words->threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  step->add_option(
      "--loops", words->loops,
      fmt::format("instruction set of the loops on the CPU: {} (default: the last that the processor "
                  "has)",
                  list_of(kernels::kInstructionSets)));
  add_json(*step);
  step->footer("Example:\n  hstu bench step --threads 2\n./dev bench cpu compares it with PyTorch.");
  step->callback([words] {
    use_threads(words->threads);
    if (!words->loops.empty())
      kernels::use_instruction_set(parse_word(kernels::kInstructionSets, words->loops, "loops"));
    const Json result = benchmark_step(words->step);
    fmt::print("{}\n", words->json ? result.dump() : step_text(result));
  });
  CLI::App* const data = command->add_subcommand(
      "data", "Measure opening a dataset, its first batch, and building batches on one core; one JSON line");
  data->add_option("DATASET", words->data.dataset, "a dataset of hstu prepare")->required();
  data->add_option("--samples", words->data.samples, "minimum number of samples")->check(at_least(1));
  data->add_option("--batch-size", words->data.batch_size, "samples per batch")->check(at_least(1));
  data->add_option("--history", words->data.history, "events of a history; also the minimum before an anchor")
      ->check(at_least(1));
  data->footer(
      "Example:\n  hstu bench data dataset --history 1000\n./dev bench data compares it with NumPy.");
  data->callback([words] { fmt::print("{}\n", benchmark_data(words->data).dump()); });
  CLI::App* const layer =
      command->add_subcommand("layer", "Measure a stack of HSTU layers, forward and backward, by stage");
  layer->add_option("--samples", words->layer.samples, "of the batch")->check(at_least(1));
  layer->add_option("--tokens", words->layer.tokens, "of each sample")->check(at_least(1));
  layer->add_option("--layers", words->layer.layers)->check(at_least(1));
  layer->add_option("--heads", words->layer.heads)->check(at_least(1));
  layer->add_option("--head-dim", words->layer.head_dim)->check(at_least(1));
  layer->add_option("--dim", words->layer.dim, "width of the residual stream; 0: heads times head size")
      ->check(at_least(0));
  layer->add_option("--gate", words->gate, "product (NVIDIA's form) or concat (DLRMv4's)");
  layer->add_flag("--recompute-norm", words->layer.recompute.norm, "keep no normalised inputs");
  layer->add_flag("--recompute-silu", words->layer.recompute.silu, "keep no activated U, V, Q and K");
  layer->add_flag("--recompute-gate", words->layer.recompute.gate, "keep no results of gates");
  layer->add_flag("--recompute-layer", words->layer.recompute.layer,
                  "keep nothing of layers but their inputs");
  layer->add_option("--dropout", words->layer.dropout)->check(CLI::Range(0.0, 0.999));
  layer->add_flag("--deterministic", words->layer.deterministic,
                  "the same bits every time, as training has them by default");
  layer->add_option(
      "--sweep", words->sweep,
      "time lengths by attention and recomputation, draw this .svg file, write the figures to a "
      ".json beside it");
  layer->add_option("--sweep-lengths", words->sweep_lengths, "tokens of a sample")
      ->delimiter(',')
      ->check(at_least(1));
  layer->add_option("--rounds", words->layer.rounds, "timed rounds")->check(at_least(1));
  layer->add_option("--device", words->layer.device, "host, cuda, cuda:N or auto");
  layer->add_option("--precision", words->precision, list_of(kPrecisions));
  layer->add_option("--attention", words->attention,
                    "kernels of attention: " + list_of(kAttentionChoices) + ", as the key of training");
  add_json(*layer);
  layer->footer(
      "Burst: 0.25 s idle before each round; sustained: round after round, after one second of them.\n"
      "Examples:\n  hstu bench layer --samples 32 --tokens 4099 --heads 4 --head-dim 256\n"
      "  hstu bench layer --sweep layer.svg --layers 1 --heads 4 --head-dim 256");
  layer->callback([words] {
    words->layer.gate = parse_word(kernels::kGateForms, words->gate, "gate");
    words->layer.precision = parse_word(kPrecisions, words->precision, "precision");
    words->layer.attention = parse_word(kAttentionChoices, words->attention, "attention");
    if (!words->sweep.empty())
      return draw_layer_sweep(
          {.layer = words->layer, .lengths = words->sweep_lengths, .picture = words->sweep});
    const Json result = benchmark_layer(words->layer);
    fmt::print("{}\n", words->json ? result.dump() : layer_text(result));
  });
  CLI::App* const embedding = command->add_subcommand(
      "embedding", "Measure embedding tables on the host, with and without limits; one JSON line");
  embedding->add_option("--tables", words->embedding.tables)->check(CLI::Range(1, 10'000));
  embedding->add_option("--ids", words->embedding.ids, "of a step, over all tables")->check(at_least(1));
  embedding->add_option("--dim", words->embedding.dim, "values of a row")->check(CLI::Range(1, 1 << 16));
  embedding->add_option("--rows", words->embedding.rows, "distinct ids of a table, at most")
      ->check(at_least(1));
  embedding->add_option("--capacity", words->embedding.capacity, "rows of a table; 0: no limit")
      ->check(at_least(0));
  std::vector<std::string> evictions = words_of(kEvictions);
  std::erase(evictions, word_of(kEvictions, Evict::custom));  // is refused below
  embedding->add_option("--evict", words->evict, fmt::format("{}", fmt::join(evictions, ", ")));
  embedding->add_option("--admit-after", words->embedding.admit_after, "occurrences before an id has a row")
      ->check(at_least(0));
  embedding->add_option("--power", words->embedding.power, "of the power law of the ids")
      ->check(CLI::Range(0.0, 4.0));
  embedding->add_option("--steps", words->embedding.steps, "timed steps")->check(at_least(1));
  embedding->add_option("--warmup", words->embedding.warmup, "steps before the timed ones")
      ->check(at_least(0));
  embedding->add_option("--seed", words->embedding.seed, "of ids and initial values");
  embedding->add_option("--threads", words->threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  embedding->footer("Example:\n  hstu bench embedding --capacity 100000 --evict lfu");
  embedding->callback([words] {
    use_threads(words->threads);
    words->embedding.evict = parse_word(kEvictions, words->evict, "evict");
    if (words->embedding.evict == Evict::custom)
      fail_usage("--evict custom: random ids have no column of scores; use another word");
    fmt::print("{}\n", benchmark_embedding(words->embedding).dump());
  });
  CLI::App* const suite = command->add_subcommand(
      "embedding-suite",
      "Measure embedding tables as NVIDIA's benchmark of DynamicEmb does: rows on the device, "
      "behind a cache, and on the host");
  suite->add_option("--device", words->suite.device, "host, cuda, cuda:N or auto");
  suite
      ->add_option("--cases", words->suite.cases, fmt::format("{}", fmt::join(embedding_suite_cases(), ", ")))
      ->delimiter(',');
  suite->add_option("--tables", words->suite.tables)->check(CLI::Range(1, 10'000));
  suite->add_option("--ids", words->suite.ids, "of a step, over all tables")->check(CLI::PositiveNumber);
  suite->add_option("--dim", words->suite.dim, "values of a row")->check(CLI::Range(1, 1 << 16));
  suite
      ->add_option("--device-rows", words->suite.device_rows,
                   "ids of all tables, where rows are on the device")
      ->check(CLI::PositiveNumber);
  suite->add_option("--host-rows", words->suite.host_rows, "ids of all tables in the other cases")
      ->check(CLI::PositiveNumber);
  suite->add_option("--batches", words->suite.batches, "different ones; three passes over them")
      ->check(CLI::PositiveNumber);
  suite->add_option("--power", words->suite.power, "of the power law of the ids")
      ->check(CLI::Range(0.0, 4.0));
  suite->add_option("--seed", words->suite.seed, "of ids and initial values");
  suite->add_option("--threads", words->threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  add_json(*suite);
  suite->footer("Example:\n  hstu bench embedding-suite --cases device_adam,cache_0.8_adam");
  suite->callback([words] {
    use_threads(words->threads);
    const Json result = benchmark_embedding_suite(words->suite);
    fmt::print("{}\n", words->json ? result.dump() : embedding_suite_text(result));
  });
  add_catalogue_command(*command);
  add_search_command(*command);
  add_stream_command(*command);
  add_balance_command(*command);
  add_attention_bench_command(*command);
  add_serve_bench_command(*command);
  add_score_bench_command(*command);
}

}  // namespace hstu
