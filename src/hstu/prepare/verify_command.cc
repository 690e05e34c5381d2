#include "hstu/prepare/verify_command.h"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/prepare/verify.h"

namespace hstu {
namespace {

void run(const std::string& folder) {
  std::vector<std::vector<std::string>> rows = {{"file", "verdict", "compared"}};
  std::int64_t wrong = 0;
  for (const FileVerdict& verdict : verify(folder)) {
    rows.push_back({verdict.file, word_of(FileVerdict::kStatuses, verdict.status), verdict.remark});
    wrong += verdict.status == FileVerdict::Status::kOk ? 0 : 1;
  }
  fmt::print("{}", table(rows));
  check(wrong == 0, "{}: {} of {} checks failed: copy or prepare the data again", folder, wrong,
        rows.size() - 1);
}

}  // namespace

void add_verify_command(CLI::App& app) {
  const auto folder = std::make_shared<std::string>();
  CLI::App* const command =
      app.add_subcommand("verify", "Check a dataset, or a cache in MLCommons' layout, file by file");
  command->footer(
      "Example:\n"
      "  hstu prepare verify datasets/yambda-50m\n"
      "  hstu prepare verify processed_5b/hstu_cache_L4086\n\n"
      "A dataset is compared with the checksums of its manifest. A cache of Yambda-5b is compared with the\n"
      "digests that MLCommons publishes; of any other cache only the types and lengths of the files are\n"
      "checked. All data are read once. The exit status is 1 if anything differs or is missing.");
  command->add_option("PATH", *folder, "folder of a dataset or of a cache")
      ->required()
      ->check(CLI::ExistingDirectory);
  command->callback([folder] { run(*folder); });
}

}  // namespace hstu
