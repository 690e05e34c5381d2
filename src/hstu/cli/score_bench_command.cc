#include <memory>

#include <fmt/format.h>

#include "hstu/arguments/size.h"
#include "hstu/benchmark/score_benchmark.h"
#include "hstu/cli/commands.h"

namespace hstu {

void add_score_bench_command(CLI::App& bench) {
  struct Words {
    ScoreBenchmarkOptions options;
    int threads = 0;
  };
  auto words = std::make_shared<Words>();
  ScoreBenchmarkOptions& o = words->options;
  const CLI::Range positive(std::int64_t{1}, std::int64_t{1} << 40);
  CLI::App* const command = bench.add_subcommand(
      "score", "Measure requests to a scorer in memory, with and without kept histories");
  command->add_option("MODEL", o.model, "folder of an export, or of a run")->required();
  command->add_option("--device", o.device, "host, cuda, cuda:N or auto; default: the run's own");
  command->add_option("--history", o.histories, "events of each user; several: one row for each")
      ->delimiter(',')
      ->check(positive);
  command->add_option("--items", o.items, "candidates of each request; kind retrieval: the best of all items")
      ->delimiter(',')
      ->check(positive);
  command->add_option("--users", o.users, "requests that are answered together")
      ->delimiter(',')
      ->check(positive);
  command->add_option("--new-events", o.new_events, "last ones of each user that the request before had not")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--history-cache", o.cache_bytes, "memory for keys and values of histories")
      ->transform(size_between(1, std::int64_t{1} << 50))
      ->default_str("8GiB");
  command->add_option("--ids", o.ids, "items are below it")->check(positive)->capture_default_str();
  command->add_option("--rounds", o.rounds, "timed requests of each row")
      ->check(positive)
      ->capture_default_str();
  command->add_option("--clients", o.clients, "threads that ask at the same time, of --users each; 0: none")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_flag("--operations", o.operations, "times of the operations on the device too");
  command->add_option("--threads", words->threads, "that compute; 0: all cores")
      ->check(CLI::Range(0, kMostThreads));
  command->footer(
      "Times are from requests in memory to their scores there. Prints one JSON object. Example:\n"
      "  hstu bench score exported --history 1024,4096 --items 100,1000 --users 1");
  command->callback([words] {
    use_threads(words->threads);
    fmt::print("{}\n", benchmark_score(words->options).dump(2));
  });
}

}  // namespace hstu
