#include "hstu/mlperf/verdict_text.h"

#include "hstu/base/error.h"
#include "hstu/mlperf/check.h"
#include "hstu/mlperf/convergence.h"

namespace hstu {
namespace {

// Where the run is in the band of the reference.
std::string place_of(const LoggedRun& run) {
  if (run.status != "success" || !run.samples || !run.batch) return "  did not converge\n";
  const std::string converged =
      fmt::format("  converged after {} samples at a batch of {}", samples_text(*run.samples), *run.batch);
  const auto band = convergence_band(*run.batch);
  if (!band) return converged + "; the reference has no point for so large a batch\n";
  const char* const place = *run.samples >= band->mean    ? "not faster than the reference's mean"
                            : *run.samples >= band->least ? "faster than the mean, within what is allowed"
                                                          : "faster than the mean of ten runs may be";
  return fmt::format("{}: {} (mean {}, least {})\n", converged, place, samples_text(band->mean),
                     samples_text(band->least));
}

}  // namespace

LogReport report_on(const Path& log) {
  const MllogFile file = read_mllog(log);
  const LogVerdict verdict = check_mllog(file);
  const LoggedRun run = logged_run(file);
  LogReport report{verdict.complies(), ""};
  for (const std::string& error : verdict.errors) report.text += fmt::format("  error: {}\n", error);
  for (const std::string& warning : verdict.warnings) report.text += fmt::format("  warning: {}\n", warning);
  if (run.init_seconds) report.text += fmt::format("  initialisation {:.1f} s\n", *run.init_seconds);
  if (run.run_seconds) report.text += fmt::format("  run {:.2f} minutes\n", *run.run_seconds / 60);
  report.text += place_of(run);
  report.text += fmt::format("{}: {}\n", log.string(), report.complies ? "SUCCESS" : "FAILED");
  return report;
}

std::string text_of(const PackageVerdict& verdict) {
  std::string text;
  for (const std::string& error : verdict.errors) text += fmt::format("  error: {}\n", error);
  for (const std::string& note : verdict.notes) text += fmt::format("  {}\n", note);
  if (verdict.minutes) text += fmt::format("  score {:.4f} minutes\n", *verdict.minutes);
  return text + fmt::format("submission: {}\n", verdict.passes() ? "SUCCESS" : "FAILED");
}

}  // namespace hstu
