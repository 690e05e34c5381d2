#include "hstu/prepare/generate_command.h"

#include <gmock/gmock.h>

#include "hstu/base/error.h"
#include "synthetic/generated_events.h"

namespace hstu {
namespace {

TEST(GenerateCommand, HelpTeachesWithAnExample) {
  CLI::App app;
  add_generate_command(app);
  const std::string help = app.get_subcommand("generate")->get_subcommand("yambda")->help();
  EXPECT_THAT(help, testing::HasSubstr("hstu generate yambda --users"));
  EXPECT_THAT(help, testing::HasSubstr("--events-per-user-day"));
}

TEST(GenerateCommand, WritesWhatItsWordsSay) {
  CLI::App app;
  add_generate_command(app);
  const Path folder = fresh_folder("command");
  app.parse("generate yambda --users 3 --days 4 --items 50 --seed 9 --events-per-user-day 5 --output " +
            folder.string());
  const Events events(folder);
  EXPECT_EQ(events.uid.back(), 3u);
  EXPECT_THAT(read_file(folder / "truth.json"), testing::HasSubstr("\"seed\": 9"));
  std::filesystem::remove_all(folder);
}

TEST(GenerateCommand, LetsUsageErrorsPass) {
  CLI::App app;
  add_generate_command(app);
  EXPECT_THROW(app.parse("generate yambda --users 0 --days 4 --items 50 --output nowhere"), UsageError);
  CLI::App other;
  add_generate_command(other);
  EXPECT_THROW(other.parse("generate yambda --users many --days 4 --items 50 --output nowhere"),
               CLI::ParseError);
}

}  // namespace
}  // namespace hstu
