// A schema file, and a single condition: rejected with the place, or read.
#include "fuzz/harness.h"
#include "hstu/events/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::accept_or_refuse([&] {
    const Condition condition = parse_condition(text.substr(0, text.find('\n')));
    require(!condition.column.empty() && !to_string(condition).empty(), "a condition on nothing");
  });
  return fuzz::accept_or_refuse([&] {
    const Schema schema = read_schema(fuzz::plain_file(fuzz::fresh_folder() / "schema.toml", text));
    require(describe(schema).actions.size() == schema.actions.size(), "an action was lost");
  });
}
