// MLCommons' prepared cache: rejected, or a dataset that passes its own verification. Verifying the cache
// itself gives a verdict for anything.
#include <array>

#include <nlohmann/json.hpp>

#include "events/yambda_log.h"
#include "fuzz/harness.h"
#include "hstu/dataset/dataset.h"
#include "hstu/events/verify_dataset.h"
#include "hstu/mlcommons/mlcommons.h"
#include "hstu/mlcommons/verify_mlcommons.h"

namespace {

using namespace hstu;

constexpr std::array kNumbers{"flat_uid.npy",         "flat_item_ids.npy", "flat_timestamps.npy",
                              "flat_event_types.npy", "unique_uids.npy",   "user_start.npy",
                              "user_end.npy",         "positions_L3.npy",  "anchor_ts_L3.npy"};
constexpr std::array kFlags{"flat_is_listen_plus.npy", "flat_is_like.npy", "flat_is_skip.npy",
                            "flat_is_organic.npy"};

// With the counts of the files where it has some, so that mutations of these pass the check.
std::string sealed(std::string_view text, std::size_t users, std::size_t events) {
  auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!json.is_object()) return std::string(text);
  for (const auto& [key, count] : {std::pair("num_users", users), {"total_events", events}})
    if (json.contains(key) && json[key].is_number_integer()) json[key] = count;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

// Input: store_meta.json, then the elements of thirteen files, each after a zero byte. Times are in half
// days.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Path metadata =
      fuzz::made_folder("metadata", [](const Path& folder) { write_mappings(folder); });
  std::string_view rest = fuzz::text_of(data, size);
  return fuzz::accept_or_refuse([&] {
    const Path folder = fuzz::fresh_folder(), cache = folder / "hstu_cache_L3";
    std::filesystem::create_directories(cache);
    const std::string_view meta = fuzz::take_part(rest);
    std::size_t users = 0, events = 0;
    for (const std::string_view name : kNumbers) {
      std::vector<std::int64_t> numbers = fuzz::numbers_of(fuzz::take_part(rest));
      if (name == "unique_uids.npy") users = numbers.size();
      if (name == "flat_item_ids.npy") events = numbers.size();
      const bool times = name == "flat_timestamps.npy" || name == "anchor_ts_L3.npy";
      for (std::int64_t& number : numbers)
        if (times && std::abs(number % 1000) == std::abs(number)) number *= 43'200;
      fuzz::plain_npy<std::int64_t>(cache / name, numbers);
    }
    for (const std::string_view name : kFlags) {
      const std::vector<std::int64_t> numbers = fuzz::numbers_of(fuzz::take_part(rest));
      if (name == "flat_is_organic.npy")
        fuzz::plain_npy<std::int8_t>(cache / name, numbers);
      else
        fuzz::plain_npy<bool>(cache / name, numbers);
    }
    fuzz::plain_npy<float>(cache / "flat_played_ratio.npy", std::vector<std::int64_t>(events, 50));
    fuzz::plain_file(cache / "store_meta.json", sealed(meta, users, events));
    fuzz::plain_file(cache / "_READY", "");
    verify_mlcommons(cache);
    import_mlcommons(cache, metadata, folder / "ds");
    require(Dataset(folder / "ds").events() == static_cast<std::int64_t>(events),
            "an event was lost or made up");
    for (const FileVerdict& verdict : verify_dataset(folder / "ds"))
      require(verdict.status == FileVerdict::Status::kOk, "{}: {}", verdict.file, verdict.remark);
  });
}
