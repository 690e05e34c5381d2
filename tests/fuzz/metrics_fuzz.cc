// The report of any metrics.jsonl, and what `hstu compare` reads of it: rejected with the name of the file,
// or a page and an outcome.
#include "fuzz/harness.h"
#include "hstu/base/json_lines.h"
#include "hstu/comparison/run_outcome.h"
#include "hstu/metrics/ranking.h"
#include "hstu/report/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  return fuzz::accept_or_refuse([&] {
    const Path path = fuzz::plain_file(fuzz::fresh_folder() / "metrics.jsonl", fuzz::text_of(data, size));
    fuzz::accept_or_refuse([&] { to_json(outcome_of(RunMetrics(read_json_lines(path)), kRankingMetrics)); });
    const std::string page = report_html({.title = "run",
                                          .metrics = RunMetrics(read_json_lines(path)),
                                          .specs = kRankingMetrics,
                                          .config = "seed = 1\n"});
    require(page.ends_with("</html>\n"), "a page without its end");
  });
}
