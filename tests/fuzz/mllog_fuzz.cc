// Logs of MLPerf that anyone may have written: every one gets a verdict, alone and as ten runs of a
// submission.
#include <vector>

#include "fuzz/harness.h"
#include "hstu/mlperf/verdict_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  return fuzz::accept_or_refuse([&] {
    const Path log = fuzz::plain_file(fuzz::fresh_folder() / "result_0.txt", fuzz::text_of(data, size));
    const LogReport report = report_on(log);
    const std::vector<Path> ten(kRunsOfPackage, log);
    const PackageVerdict verdict = check_package_logs(ten, true);
    require(!verdict.passes(), "ten runs with one seed were accepted");
    fuzz::touch(report.text.data(), report.text.size());
  });
}
