// metrics.jsonl as after a crash: rejected with the line, or truncated and continued.
#include "fuzz/harness.h"
#include "hstu/base/json_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  return fuzz::accept_or_refuse([&] {
    const Path path = fuzz::plain_file(fuzz::fresh_folder() / "metrics.jsonl", fuzz::text_of(data, size));
    const std::size_t before = read_json_lines(path).size();
    { JsonLinesWriter(path).write({{"event", "end"}}); }
    require(read_json_lines(path).size() == before + 1, "a line was lost or made up");
  });
}
