#include "hstu/prepare/table_command.h"

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "hstu/base/files.h"
#include "hstu/base/staged_file.h"
#include "hstu/base/text.h"
#include "hstu/columns/gzip_text.h"
#include "hstu/columns/npy_vectors.h"
#include "hstu/columns/parquet_text.h"
#include "hstu/columns/parquet_vectors.h"

namespace hstu {
namespace {

void add_to_csv_command(CLI::App& app) {
  struct Words {
    std::string file;
    std::string time_unit = "s";
  };
  const auto words = std::make_shared<Words>();
  CLI::App* const command =
      app.add_subcommand("to-csv", "Print a table, Parquet or CSV compressed by gzip, as CSV");
  command->footer(
      "Example:\n  hstu prepare to-csv requests.parquet | head\n\nhstu predict reads such files through it.");
  command->add_option("FILE", words->file, "the table")->required();
  command->add_option("--time-unit", words->time_unit, "in which timestamps are printed: s, ms, us or ns")
      ->check(CLI::IsMember({"s", "ms", "us", "ns"}));
  command->callback([words] {
    std::signal(SIGPIPE, SIG_IGN);
    check_input_file(words->file);
    if (begins_as_gzip(words->file)) return write_unpacked(words->file, STDOUT_FILENO);
    const std::int64_t steps = words->time_unit == "s"    ? 1
                               : words->time_unit == "ms" ? 1'000
                               : words->time_unit == "us" ? 1'000'000
                                                          : 1'000'000'000;
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
  command
      ->add_option("--reals", words->types.reals,
                   "columns of fp32, as scores are; numbers of other columns are integers or doubles")
      ->delimiter(',');
  command->add_option("--texts", words->types.texts, "columns of texts")->delimiter(',');
  command->callback([words] {
    check_writable(words->output);
    write_as_parquet(words->types, words->output);
  });
}

void add_to_npy_command(CLI::App& app) {
  struct Words {
    std::string file, output;
    VectorColumns columns{.id = "id", .vector = "vector"};
  };
  const auto words = std::make_shared<Words>();
  CLI::App* const command =
      app.add_subcommand("to-npy", "Write vectors in Parquet as NumPy, for hstu import");
  command->footer(
      "Writes DIR/ids.npy and DIR/rows.npy. Example:\n"
      "  hstu prepare to-npy vectors.parquet --id item_id --vector embedding --output vectors\n"
      "  hstu import --rows item=vectors/rows.npy --ids item=vectors/ids.npy --output rows");
  command->add_option("FILE", words->file, "the Parquet file")->required();
  command
      ->add_option("--id", words->columns.id,
                   "column of integers, or of texts where the log names items by texts")
      ->capture_default_str();
  command->add_option("--vector", words->columns.vector, "column of lists of floats, all of one length")
      ->capture_default_str();
  command->add_option("--output", words->output, "new folder")->required()->type_name("DIR");
  command->callback([words] {
    check_input_file(words->file);
    StagedFolder staged(words->output);
    const std::int64_t rows =
        write_vectors(words->file, words->columns, staged.path() / "rows.npy", staged.path() / "ids.npy");
    staged.commit();
    fmt::print("{} rows in {}\n", with_separators(rows), words->output);
  });
}

void add_from_npy_command(CLI::App& app) {
  struct Words {
    std::string rows, ids, output;
    VectorColumns columns{.id = "id", .vector = "vector"};
  };
  const auto words = std::make_shared<Words>();
  CLI::App* const command = app.add_subcommand("from-npy", "Write vectors of NumPy as a Parquet table");
  command->footer(
      "Example:\n  hstu prepare from-npy vectors/items.f32.npy --ids vectors/ids.i64.npy --output "
      "items.parquet\n\nhstu export --vectors writes Parquet through it.");
  command->add_option("FILE", words->rows, "floats (n, D), .npy")->required();
  command->add_option("--ids", words->ids, "64-bit integers (n), .npy")->required()->type_name("FILE");
  command->add_option("--id", words->columns.id, "column of the ids")->capture_default_str();
  command->add_option("--vector", words->columns.vector, "column of the lists")->capture_default_str();
  command->add_option("--output", words->output, "new Parquet file")->required()->type_name("FILE");
  command->callback([words] {
    check_input_file(words->rows);
    check_input_file(words->ids);
    StagedFile staged(words->output, StagedFile::Existing::refuse);
    write_vectors_as_parquet(words->rows, words->ids, words->columns, staged.temporary());
    staged.commit();
  });
}

}  // namespace

void add_table_commands(CLI::App& app) {
  add_to_csv_command(app);
  add_to_npy_command(app);
  add_from_csv_command(app);
  add_from_npy_command(app);
}

}  // namespace hstu
