#include "hstu/comparison/sweep.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr std::size_t kMostRuns = 10'000, kLongestName = 200;

std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values{""};
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

// What every file system and every shell takes as it is.
std::string folder_name(const SweepRun& run) {
  std::string name;
  for (const auto& [key, value] : run.setting) name += fmt::format("{}={},", key, value);
  name += fmt::format("seed={}", run.seed);
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("._=,+-").find(c) != std::string_view::npos;
    if (!plain) c = '_';
  }
  return name;
}

void check_keys(const SweepWords& words) {
  std::set<std::string> keys;
  for (const Variation& variation : words.vary) {
    if (!keys.insert(variation.key).second) fail_usage("--vary {}: the key is varied twice", variation.key);
    if (variation.key == "seed" && words.seeds > 1)
      fail_usage("--vary seed and --seeds {} contradict each other: use one", words.seeds);
  }
}

// The values of the n-th setting.
std::vector<std::pair<std::string, std::string>> setting_of(const std::vector<Variation>& vary,
                                                            std::size_t n) {
  std::vector<std::pair<std::string, std::string>> setting;
  for (auto variation = vary.rbegin(); variation != vary.rend(); ++variation) {
    setting.emplace_back(variation->key, variation->values[n % variation->values.size()]);
    n /= variation->values.size();
  }
  std::reverse(setting.begin(), setting.end());
  return setting;
}

}  // namespace

Variation parse_variation(const std::string& word) {
  const std::size_t at = word.find('=');
  if (at == std::string::npos || at == 0) fail_usage("--vary {}: expected section.key=value,value,...", word);
  Variation variation{word.substr(0, at), split_values(word.substr(at + 1))};
  std::set<std::string> known;
  for (const std::string& value : variation.values) {
    if (value.empty()) fail_usage("--vary {}: a value is empty", word);
    if (!known.insert(value).second) fail_usage("--vary {}: {} is there twice", word, value);
  }
  return variation;
}

std::vector<SweepRun> plan_sweep(const SweepWords& words) {
  check_keys(words);
  std::size_t settings = 1;
  for (const Variation& variation : words.vary) {
    settings *= variation.values.size();
    if (settings * static_cast<std::size_t>(words.seeds) > kMostRuns)
      fail_usage("the sweep has more than {} runs: vary fewer keys or values", kMostRuns);
  }
  std::vector<SweepRun> runs;
  runs.reserve(settings * static_cast<std::size_t>(words.seeds));
  std::set<std::string> names;
  for (std::size_t n = 0; n < settings; ++n) {
    for (std::int64_t i = 0; i < words.seeds; ++i) {
      SweepRun run;
      run.config = words.config;
      run.setting = setting_of(words.vary, n);
      run.set = words.set;
      for (const auto& [key, value] : run.setting) run.set.push_back(fmt::format("{}={}", key, value));
      run.seed = load_config<RunOptions>(words.config, run.set).seed;
      if (run.seed == kRandomNumber)
        fail_usage("seed = \"random\": a sweep counts its seeds from the configuration's: write a number");
      run.seed += static_cast<std::uint64_t>(i);
      run.set.push_back(fmt::format("seed={}", run.seed));
      run.options = load_config<RunOptions>(words.config, run.set);
      check_consistency(run.options);
      std::erase_if(run.setting, [](const auto& entry) { return entry.first == "seed"; });
      run.name = folder_name(run);
      if (run.name.size() > kLongestName)
        fail_usage("--vary: \"{}\" is too long for the name of a folder: vary fewer keys, or shorter values",
                   run.name);
      if (!names.insert(run.name).second)
        fail_usage("--vary: two runs would have the folder {}: their values differ only in signs", run.name);
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

}  // namespace hstu
