#include "hstu/mlperf/package_check.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>

#include "hstu/base/error.h"
#include "hstu/mlperf/check.h"
#include "hstu/mlperf/convergence.h"
#include "hstu/mlperf/rule_engine.h"

namespace hstu {
namespace {

// A seed and the place of the source that logged it: no two runs may have the same.
using Seed = std::tuple<std::string, std::string, std::int64_t>;

std::optional<std::int64_t> seed_of(const Json& value) {
  if (value.is_number_integer() || value.is_boolean()) return value.get<std::int64_t>();
  if (value.is_number_float() && std::abs(value.get<double>()) < 9e18)
    return static_cast<std::int64_t>(value.get<double>());
  if (!value.is_string()) return std::nullopt;
  try {
    std::size_t used = 0;
    const auto& text = value.get_ref<const std::string&>();
    const std::int64_t seed = std::stoll(text, &used);
    return used == text.size() ? std::optional(seed) : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void check_seeds(const Path& file, const MllogFile& log, std::map<Seed, Path>& taken,
                 PackageVerdict& verdict) {
  int count = 0;
  for (const MllogLine& line : log.lines) {
    if (line.key != "seed") continue;
    ++count;
    const auto seed = seed_of(line.value);
    const bool has_place =
        line.metadata.is_object() && line.metadata.contains("file") && line.metadata.contains("lineno");
    if (!seed || !has_place) {
      verdict.errors.push_back(
          fmt::format("{}: expected an integer seed with file and lineno", file.string()));
      return;
    }
    const Seed here{line.metadata["file"].dump(), line.metadata["lineno"].dump(), *seed};
    const auto [other, is_new] = taken.emplace(here, file);
    if (!is_new)
      verdict.errors.push_back(
          fmt::format("{} and {} have the same seed {}", other->second.string(), file.string(), *seed));
  }
  if (count == 0) verdict.errors.push_back(fmt::format("{} has no seed", file.string()));
  if (count > 1) verdict.notes.push_back(fmt::format("{} has {} seeds", file.string(), count));
}

}  // namespace

PackageVerdict check_package_logs(std::span<const Path> logs, bool closed) {
  PackageVerdict verdict;
  if (logs.size() != kRunsOfPackage)
    verdict.errors.push_back(fmt::format("expected {} logs, found {}", kRunsOfPackage, logs.size()));
  std::vector<std::string> failing;
  std::vector<Convergence> runs;
  std::vector<double> minutes;
  std::map<Seed, Path> seeds;
  for (const Path& file : logs) {
    const MllogFile log = read_mllog(file);
    const LogVerdict of_log = check_mllog(log);
    if (!of_log.complies()) failing.push_back(fmt::format("{}: {}", file.string(), of_log.errors.front()));
    runs.push_back(convergence_of(log));
    if (const auto seconds = logged_run(log).run_seconds) minutes.push_back(*seconds / 60);
    if (closed) check_seeds(file, log, seeds, verdict);
  }
  if (failing.size() == 1)
    verdict.notes.push_back("one log does not comply, which is allowed: " + failing.front());
  if (failing.size() > 1) verdict.errors.insert(verdict.errors.end(), failing.begin(), failing.end());
  if (closed && !runs.empty()) {
    const ConvergenceVerdict convergence = check_convergence(runs);
    (convergence.passes ? verdict.notes : verdict.errors).push_back("convergence: " + convergence.text);
    verdict.factor = convergence.factor;
  }
  if (minutes.size() == logs.size() && minutes.size() > 2)
    verdict.minutes = olympic_mean(minutes) * verdict.factor.value_or(1);
  return verdict;
}

}  // namespace hstu
