// A condition: refused with the text and a caret below it, or written again as a text that reads the same.
#include "fuzz/harness.h"
#include "hstu/events/condition.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  const std::string_view text = fuzz::text_of(data, size);
  try {
    const Condition condition = parse_condition(text);
    require(parse_condition(to_string(condition)) == condition, "not the same after a round trip");
  } catch (const InternalError&) {
    throw;
  } catch (const UsageError& error) {
    if (text.find('\0') != std::string_view::npos) return 0;  // it ends what()
    const std::string_view words = error.what();
    require(words.find(text) != std::string_view::npos && words.ends_with('^'),
            "a refusal without its place");
  }
  return 0;
}
