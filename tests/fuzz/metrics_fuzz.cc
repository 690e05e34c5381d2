// The report of any metrics.jsonl: rejected with the name of the file, or a page.
#include "fuzz/harness.h"
#include "hstu/base/json_lines.h"
#include "hstu/report/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  return fuzz::accept_or_refuse([&] {
    const Path path = fuzz::plain_file(fuzz::fresh_folder() / "metrics.jsonl", fuzz::text_of(data, size));
    const std::string page =
        report_html({.title = "run", .metrics = RunMetrics(read_json_lines(path)), .config = "seed = 1\n"});
    require(page.ends_with("</html>\n"), "a page without its end");
  });
}
