// RUN/baseline.json: used if it has the metrics of this dataset, or computed and written again.
#include <numeric>

#include "fuzz/harness.h"
#include "fuzz/small_dataset.h"
#include "hstu/base/checksum.h"
#include "hstu/base/json_text.h"
#include "hstu/baseline/baseline_file.h"

namespace {

using namespace hstu;

const Dataset& dataset() {
  static const Dataset opened(fuzz::small_dataset());
  return opened;
}

Measures metrics_with(const Path& file) {
  std::vector<std::int64_t> positions(12);
  std::iota(positions.begin(), positions.end(), 0);
  return baseline_metrics(dataset(), {}, {}, positions, file);
}

// With this dataset and the checksum, so that mutations of the metrics pass these checks.
std::string sealed(std::string_view text, const Json& own) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("metrics")) return std::string(text);
  json["of"] = own.at("of");
  const auto dump = [](const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  json["checksum"] = checksum(dump({{"of", json["of"]}, {"metrics", json["metrics"]}}));
  return dump(json);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Path file = fuzz::fresh_folder() / "baseline.json";
  static const Json own = [&] {
    metrics_with(file);
    return parse_json(read_file(file), file);
  }();
  const std::string text = sealed(fuzz::text_of(data, size), own);
  fuzz::plain_file(file, text);
  const Json found = to_json(metrics_with(file));
  const std::string after = read_file(file);
  require(after == text || (after == own.dump(2) + "\n" && found == own.at("metrics")),
          "neither the file's metrics nor new ones");
  require(to_json(metrics_with(file)) == found, "a second start finds others");
  return 0;
}
