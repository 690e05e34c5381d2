#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "hstu/arguments/size.h"
#include "hstu/arguments/store.h"
#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/cli/commands.h"
#include "hstu/cli/stop_signals.h"
#include "hstu/objects/object_url.h"
#include "hstu/score/model_folder.h"
#include "hstu/serve/load.h"
#include "hstu/serve/serve.h"
#include "hstu/serve/store_reader.h"

namespace hstu {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

constexpr const char* kServeHelp =
    "Answers POST /score, /top and /vectors, GET /health, /ready and /metrics (Prometheus) until SIGTERM or\n"
    "SIGINT; then it answers what it has accepted, and ends with status 0 if all of it had its whole "
    "answer.\n"
    "Requests that arrive together are scored together. Scores are those of hstu predict, to the last bit.\n"
    "docs/serving.md describes the bodies.\n"
    "\n"
    "Examples:\n"
    "  hstu serve exported --port 8080\n"
    "  hstu serve exported --data dataset --history-cache 4GiB --watch published\n"
    "  hstu serve s3://models/shop --watch s3://models/shop --beside served --s3-credentials keys\n"
    "  curl -d '{\"user\": 1, \"time\": 2592000, \"items\": [3, 5],\n"
    "            \"events\": {\"item\": [7], \"time\": [2591000], \"action\": [1]}}' localhost:8080/score";

void add_model_options(CLI::App& command, ServeOptions& o) {
  command
      .add_option("MODEL", o.model.model,
                  "folder of an export or of a run, or s3://BUCKET/FOLDER of published exports")
      ->required();
  command.add_option("--checkpoint", o.model.checkpoint,
                     "of a run: of this step, or best; default: the newest");
  command
      .add_option("--data", o.model.data,
                  "dataset with the users' histories, for requests without events; default: the run's")
      ->type_name("DIR");
  command.add_option("--device", o.model.device, "host, cuda, cuda:N or auto; default: the run's own");
  command
      .add_option("--history-cache", o.model.cache_bytes,
                  "memory for keys and values of histories that stay between requests; default: none")
      ->transform(size_between(0, kMostBytes));
  command
      .add_option("--history-cache-behind", o.model.cache_behind,
                  "on a GPU: host memory for histories that leave the GPU's; default: none")
      ->transform(size_between(0, kMostBytes));
  command
      .add_option("--batch-size", o.model.batch_size, "samples of a pass; default: as the run's evaluations")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command
      .add_option(
          "--watch", o.watch,
          "folder of exports, or s3://BUCKET/FOLDER: go over to the one that its link \"current\" names, or "
          "to its newest")
      ->type_name("DIR");
  command.add_flag("--any-kind", o.any_kind,
                   "go over to a model of another kind, with other tasks, context columns or actions, too");
  command.add_option("--watch-seconds", o.watch_seconds, "between looks into it")
      ->check(CLI::Range(0.05, 86'400.0))
      ->capture_default_str();
}

void add_server_options(CLI::App& command, ServeOptions& o) {
  command.add_option("--address", o.http.address, "to listen on")->capture_default_str();
  command.add_option("--port", o.http.port, "to listen on; 0: any free one")
      ->check(CLI::Range(0, 65'535))
      ->capture_default_str();
  command.add_option("--http-threads", o.http.threads, "that read requests and write answers")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--batch-requests", o.queue.most, "users that are scored together at most")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command
      .add_option("--batch-wait", o.queue.wait_seconds,
                  "seconds that the first user of a batch waits for others")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command.add_option("--most-waiting", o.queue.waiting, "users that may wait; further ones get status 503")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command.add_option("--most-body", o.http.most_body_bytes, "of a request; longer ones get status 413")
      ->transform(size_between(1, kMostBytes))
      ->default_str("8MiB");
  command
      .add_option("--most-bodies", o.http.most_bodies_bytes,
                  "of all requests that are longer than 64 KiB together; further ones get status 503")
      ->transform(size_between(1, kMostBytes))
      ->default_str("64MiB");
  command
      .add_option("--most-candidates", o.most_candidates,
                  "items of all requests in one body; further ones get status 400")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command.add_option("--most-connections", o.http.most_connections, "further ones are closed at once")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command
      .add_option("--request-seconds", o.http.request_seconds, "to send a request, and to take its answer")
      ->check(CLI::Range(0.05, 86'400.0))
      ->capture_default_str();
  command
      .add_option("--drain-seconds", o.drain_seconds,
                  "after SIGTERM, in which /ready says no and connections are still accepted")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
  command.add_option("--idle-seconds", o.http.idle_seconds, "between the requests of a connection")
      ->check(CLI::Range(0.05, 86'400.0))
      ->capture_default_str();
}

struct ServeWords {
  ServeOptions options;
  StoreOptions store;
  Path beside;
  int threads = 0;
};

// A server that is started again serves what it had while the store does not answer, if it looks again.
void update_at_start(StoreReader& reader, const Path& current, bool looks_again) {
  try {
    reader.update();
  } catch (const Error& error) {
    if (!looks_again || !is_export(current)) throw;
    print_note("warning: {}; what was downloaded before is served\n", error.what());
  }
}

// Serves what a store publishes from the folder `beside`.
void serve_words(ServeWords words) {
  ServeOptions& options = words.options;
  const std::string model = options.model.model, watch = options.watch;
  const bool opens = is_object_url(model), watches = is_object_url(watch);
  std::optional<StoreReader> reader;
  std::optional<StoreFollower> follower;
  if (opens || watches) {
    if (words.beside.empty())
      fail_usage("{}: name a folder for what is downloaded by --beside", opens ? model : watch);
    if (opens && watches && model != watch)
      fail_usage("--watch {}: expected {}, which is opened at first", watch, model);
    reader.emplace(opens ? model : watch, words.store, words.beside);
  }
  if (opens) {
    options.model.model = words.beside / kCurrentLink;
    update_at_start(*reader, options.model.model, watches);
  }
  if (watches) {
    follower.emplace(*reader, options.watch_seconds);
    options.watch = words.beside;
  }
  serve(options, watch_stop_signals());
}

}  // namespace

void add_serve_command(CLI::App& app) {
  auto words = std::make_shared<ServeWords>();
  CLI::App* const command = app.add_subcommand("serve", "Answer requests for scores over HTTP");
  add_model_options(*command, words->options);
  add_server_options(*command, words->options);
  command->add_option("--threads", words->threads, "that compute; 0: all cores")
      ->check(CLI::Range(0, kMostThreads));
  command
      ->add_option("--beside", words->beside,
                   "of s3://: folder for what is downloaded, as hstu publish has it")
      ->type_name("DIR");
  add_store_options(*command, words->store);
  command->footer(kServeHelp);
  command->callback([words] {
    use_threads(words->threads);
    words->options.queue.threads = words->threads;
    serve_words(*words);
  });
}

void add_serve_bench_command(CLI::App& bench) {
  auto options = std::make_shared<LoadOptions>();
  LoadOptions& o = *options;
  CLI::App* const command = bench.add_subcommand("serve", "Measure the answers of a running hstu serve");
  command->add_option("--requests", o.requests, "bodies of requests, one a line")
      ->required()
      ->type_name("FILE");
  command->add_option("--host", o.host, "address of the server")->capture_default_str();
  command->add_option("--port", o.port, "of the server")->check(CLI::Range(1, 65'535))->capture_default_str();
  command->add_option("--path", o.path, "/score, /top or /vectors")->capture_default_str();
  command
      ->add_option(
          "--rate", o.rate,
          "requests a second, whether the answers come or not; 0: as fast as the connections get answers")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command->add_option("--seconds", o.seconds, "of the measurement")
      ->check(CLI::Range(0.01, 86'400.0))
      ->capture_default_str();
  command->add_option("--connections", o.connections, "to the server")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{10'000}))
      ->capture_default_str();
  command->footer(
      "Times count from the moment at which a request was due, so that requests which wait for a connection\n"
      "are not forgotten. Prints one JSON object. Example:\n"
      "  hstu bench serve --requests bodies.jsonl --port 8080 --rate 500 --seconds 30");
  command->callback([options] { fmt::print("{}\n", measure_server(*options).dump(2)); });
}

}  // namespace hstu
