#include "hstu/prepare/table_command.h"

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

#include <unistd.h>

#include "hstu/events/parquet_text.h"

namespace hstu {
namespace {

void add_to_csv_command(CLI::App& app) {
  struct Words {
    std::string file;
    std::string time_unit = "s";
  };
  const auto words = std::make_shared<Words>();
  CLI::App* const command = app.add_subcommand("to-csv", "Print a Parquet table as CSV");
  command->footer(
      "Example:\n  hstu prepare to-csv requests.parquet | head\n\nhstu predict reads Parquet through it.");
  command->add_option("FILE", words->file, "the Parquet file")->required();
  command->add_option("--time-unit", words->time_unit, "in which timestamps are printed: s, ms or us")
      ->check(CLI::IsMember({"s", "ms", "us"}));
  command->callback([words] {
    std::signal(SIGPIPE, SIG_IGN);
    check_input_file(words->file);
    const std::int64_t steps = words->time_unit == "s" ? 1 : words->time_unit == "ms" ? 1'000 : 1'000'000;
    write_as_csv(words->file, steps, STDOUT_FILENO);
  });
}

void add_from_csv_command(CLI::App& app) {
  struct Words {
    std::string output;
    TableTypes types;
  };
  const auto words = std::make_shared<Words>();
  CLI::App* const command =
      app.add_subcommand("from-csv", "Write CSV from standard input as a Parquet table");
  command->footer(
      "Example:\n  hstu prepare from-csv scores.parquet --reals score <scores.csv\n\nhstu predict writes "
      "Parquet "
      "through it.");
  command->add_option("FILE", words->output, "the Parquet file")->required();
  command->add_option("--integers", words->types.integers, "columns of whole numbers")->delimiter(',');
  command->add_option("--reals", words->types.reals, "columns of floats")->delimiter(',');
  command->add_option("--texts", words->types.texts, "columns of texts")->delimiter(',');
  command->callback([words] {
    check_writable(words->output);
    write_as_parquet(words->types, words->output);
  });
}

}  // namespace

void add_table_commands(CLI::App& app) {
  add_to_csv_command(app);
  add_from_csv_command(app);
}

}  // namespace hstu
