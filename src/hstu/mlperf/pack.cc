#include "hstu/mlperf/pack.h"

#include <filesystem>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/version.h"
#include "hstu/config/config_difference.h"
#include "hstu/mlperf/grid.h"
#include "hstu/mlperf/pack_texts.h"
#include "hstu/mlperf/submission_facts.h"
#include "hstu/mlperf/system_description.h"
#include "hstu/run/folder.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestFile = std::uintmax_t{50} << 20;
constexpr const char* kImplementation = "hstu.cpp";

std::string filled(std::string_view text, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string result(text);
  for (const auto& [name, value] : values) {
    for (std::size_t at = 0; (at = result.find(name, at)) != std::string::npos; at += value.size())
      result.replace(at, name.size(), value);
  }
  return result;
}

void write(const Path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  write_file(file, text);
}

void write_script(const Path& file, std::string_view text) {
  write(file, std::string(text));
  fs::permissions(file, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add);
}

// A link would pack a file that no run wrote, of whoever made the folder.
void refuse_links(const RunFolder& run) {
  for (const Path& path : {run.mlperf().parent_path(), run.mlperf(), run.config()})
    if (fs::is_symlink(path))
      fail_usage("{} is a link: a submission has the files of the run alone: put the file itself there",
                 path.string());
}

// Runs of one submission have one configuration, but for seeds and the place of data.
RunOptions options_of(const std::vector<Path>& runs) {
  std::optional<RunOptions> first;
  for (const Path& run : runs) {
    const RunFolder folder = open_run_folder(run);
    refuse_links(folder);
    if (!fs::exists(folder.mlperf()))
      fail_usage("{} has no log for MLPerf: train it with mlperf = true", run.string());
    check_input_file(folder.mlperf());
    if (fs::file_size(folder.mlperf()) > kLargestFile)
      fail_usage("{} has more than 50 MB, which the official repository refuses", folder.mlperf().string());
    const RunOptions options = read_run_options(folder);
    check_submitter(options.submission);
    if (!first) first = options;
    const std::vector<std::string> may_differ{"seed", "data.path", "data.workers"};
    check_differences(differences(config_values(*first), config_values(options)), may_differ,
                      config_values(options), runs.front().string());
  }
  return *first;
}

void check_name(const std::string& name) {
  if (name.empty() || name.starts_with(".") || name.find(' ') != std::string::npos)
    fail_usage("the name \"{}\" is one that the official repository refuses: no blank, no dot in front",
               name);
}

void check_names(const Path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) check_name(entry.path().filename());
}

std::vector<std::string> empty_fields(const Json& description) {
  std::vector<std::string> fields;
  for (const auto& [field, value] : description.items())
    if (value == Json("")) fields.push_back(field);
  return fields;
}

}  // namespace

Package pack(const PackWords& words) {
  const RunOptions options = options_of(words.runs);
  const std::string system = options.submission.platform;
  check_name(words.output.filename());
  StagedFolder staged(words.output);
  const Path& top = staged.path();
  const Path results = top / "results" / system / kBenchmark, benchmark = top / "benchmarks" / kBenchmark;
  const Path of_system = benchmark / system, source = benchmark / "implementations" / kImplementation;
  Package package;
  std::vector<Path> logs;
  for (std::size_t i = 0; i < words.runs.size(); ++i) {
    logs.push_back(results / fmt::format("result_{}.txt", i));
    write(logs.back(), read_file(RunFolder{words.runs[i]}.mlperf()));
  }
  package.verdict = check_package_logs(logs, options.submission.division == SubmissionDivision::closed);
  const Json description = system_description(
      this_machine(),
      {options.submission.organization, system, words.status, options.submission.division, words.nodes});
  package.unseen = empty_fields(description);
  const std::vector<std::pair<std::string, std::string>> values{{"{system}", system},
                                                                {"{version}", version()}};
  write(top / "systems" / (system + ".json"), description.dump(2) + "\n");
  write(of_system / fmt::format("{}_{}.json", system, kImplementation),
        Json{{"implementation", kImplementation}, {"system", system}, {"framework", "hstu.cpp " + version()}}
                .dump(2) +
            "\n");
  write(of_system / "README.md", filled(kPackReadme, values));
  write_script(of_system / "setup.sh", kPackSetup);
  write_script(of_system / "init_datasets.sh", kPackData);
  write_script(of_system / "run_and_time.sh", kPackRun);
  write(source / "README.md", filled(kPackSource, values));
  write(source / "config.toml", read_file(RunFolder{words.runs.front()}.config()));
  check_names(top);
  staged.commit();
  package.system = words.output / "systems" / (system + ".json");
  return package;
}

}  // namespace hstu
