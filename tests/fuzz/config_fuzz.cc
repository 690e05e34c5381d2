// A configuration file: rejected, or written and read again with the same bytes.
#include "fuzz/harness.h"
#include "hstu/options/options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  return fuzz::accept_or_refuse([&] {
    const auto options = parse_config<RunOptions>(fuzz::text_of(data, size), "input.toml");
    const std::string text = to_toml(options);
    require(to_toml(parse_config<RunOptions>(text, "resolved.toml")) == text,
            "not the same after a round trip");
    check_consistency(options);
  });
}
