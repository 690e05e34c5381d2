#include "hstu/comparison/suite.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/metrics/metric_spec.h"

namespace hstu {

void describe(ConfigFields& f, SuiteData& o) {
  f.field("generate", o.generate, "words of hstu generate without --output; \"\": data.path is set");
  f.field("prepare", o.prepare, "words of hstu prepare without --input and --output");
}

void describe(ConfigFields& f, SuiteBase& o) {
  f.field("config", o.config, "the configuration, beside the suite or an installed one", rule::required());
  f.field("ranks", o.ranks, "processes of a run; 0: one for each GPU here", rule::at_least(0));
  f.field("published_gpus", o.published_gpus, "GPUs of the published figures", rule::at_least(1));
  f.field("scale", o.scale, "of sizes with {..*scale}; 0: ranks / published_gpus, at most 1",
          rule::at_least(0));
  f.field("set", o.set, "keys of every experiment, as --set takes them");
  f.field("profile", o.profile, "as --profile takes it: exposed communication comes from it; \"\": none");
  f.field("warmup_lines", o.warmup_lines, "train lines that figures leave out", rule::at_least(0));
  f.field("epoch_samples", o.epoch_samples, "samples of an epoch, for days per epoch; 0: the run's own",
          rule::at_least(0));
  f.field("left_out", o.left_out, "of a resolved suite: experiments that need more ranks");
}

void describe(ConfigFields& f, SuiteExperiment& o) {
  f.field("name", o.name, "of its run's folder", rule::required());
  f.field("about", o.about, "what it is, and what differs from the published one");
  f.field("ranks", o.ranks, "0: the base's", rule::at_least(0));
  f.field("least_ranks", o.least_ranks, "with fewer, it is left out", rule::at_least(1));
  f.field("set", o.set, "keys that it changes");
}

void describe(ConfigFields& f, PublishedFigures& o) {
  f.field("experiment", o.experiment, "a name above", rule::required());
  f.field("source", o.source, "where it was published");
  f.field("hardware", o.hardware, "that it was measured on", rule::required());
  f.field("tflops", o.tflops, "average TFLOP/s of a GPU", rule::at_least(0));
  f.field("best_tflops", o.best_tflops, "of the best interval", rule::at_least(0));
  f.field("mfu", o.mfu, "average, 0 to 1", rule::between(0, 1));
  f.field("tokens_per_s", o.tokens_per_s, "of a GPU", rule::at_least(0));
  f.field("speedup", o.speedup, "over the first experiment", rule::at_least(0));
}

namespace {

// The value of "32*ranks"; none if the text is no such product.
std::optional<double> value_of(std::string_view text, std::int64_t ranks, double scale) {
  double value = 1;
  char operation = '*';
  while (true) {
    const std::size_t end = std::min(text.find_first_of("*/"), text.size());
    std::string word(text.substr(0, end));
    std::erase_if(word, [](char c) { return c == ' ' || c == '_'; });
    const std::optional<double> factor = word == "ranks"   ? static_cast<double>(ranks)
                                         : word == "scale" ? scale
                                                           : parse_number<double>(word);
    if (!factor || *factor <= 0) return std::nullopt;
    value = operation == '*' ? value * *factor : value / *factor;
    if (end == text.size()) return value;
    operation = text[end];
    text.remove_prefix(end + 1);
  }
}

void resolve(std::vector<std::string>& words, std::int64_t ranks, double scale) {
  for (std::string& word : words) word = with_sizes(word, ranks, scale);
}

// Calls body(size) for each {size} of `text` and puts what it returns in its place.
template <typename Body>
std::string replace_sizes(const std::string& text, const Body& body) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t open = text.find('{'); open != std::string::npos; open = text.find('{', at)) {
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos) break;
    result += text.substr(at, open - at);
    result += body(text.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return result + text.substr(at);
}

// Whether a size of the suite has a scale.
bool is_scaled(const Suite& suite) {
  std::vector<std::string> words = suite.base.set;
  words.insert(words.end(), {suite.data.generate, suite.data.prepare});
  for (const SuiteExperiment& experiment : suite.experiments)
    words.insert(words.end(), experiment.set.begin(), experiment.set.end());
  bool found = false;
  for (const std::string& word : words) {
    replace_sizes(word, [&](const std::string& size) {
      found = found || value_of(size, 1, 1) != value_of(size, 1, 2);
      return size;
    });
  }
  return found;
}

void check_suite(const Suite& suite, const Path& file) {
  if (suite.experiments.empty()) fail_usage("{}: a suite has at least one [[experiment]]", file.string());
  std::set<std::string> names;
  for (const SuiteExperiment& experiment : suite.experiments) {
    if (!is_plain_name(experiment.name) || experiment.name == "logs" || experiment.name == "data")
      fail_usage("{}: experiment.name: expected {} other than logs and data, found \"{}\"", file.string(),
                 kPlainName, experiment.name);
    if (!names.insert(experiment.name).second)
      fail_usage("{}: two experiments have the name \"{}\"", file.string(), experiment.name);
  }
  for (const PublishedFigures& figures : suite.published) {
    if (!names.contains(figures.experiment))
      fail_usage("{}: published.experiment: no experiment has the name \"{}\"{}", file.string(),
                 figures.experiment, suggestion(figures.experiment, std::vector(names.begin(), names.end())));
  }
  if (suite.data.generate.empty() != suite.data.prepare.empty())
    fail_usage("{}: data.generate and data.prepare go together: set both or none", file.string());
}

// With their published figures.
void leave_out_larger(Suite& suite) {
  std::erase_if(suite.experiments, [&](const SuiteExperiment& experiment) {
    if (experiment.ranks >= experiment.least_ranks) return false;
    suite.base.left_out.push_back(experiment.name);
    std::erase_if(suite.published,
                  [&](const PublishedFigures& figures) { return figures.experiment == experiment.name; });
    return true;
  });
}

bool is_wanted(const Suite& suite, const std::vector<std::string>& only, const std::string& name) {
  std::vector<std::string> names;
  for (const SuiteExperiment& experiment : suite.experiments) names.push_back(experiment.name);
  for (const std::string& word : only)
    if (!contains(names, word))
      fail_usage("--only {}: no experiment has this name{}", word, suggestion(word, names));
  return only.empty() || contains(only, name);
}

}  // namespace

void describe(ConfigFields& f, Suite& o) {
  f.field("title", o.title, "of the report");
  f.field("about", o.about, "what the report says above its table");
  f.section("data", o.data, "what every experiment trains on");
  f.section("base", o.base, "what all experiments have in common");
  f.sections("experiment", o.experiments, "in their order; the first is what the others are compared with");
  f.sections("published", o.published, "figures of others, beside which the report puts ours");
}

std::string with_sizes(const std::string& text, std::int64_t ranks, double scale) {
  constexpr double kMost = 1e15;  // of a configuration's integers
  return replace_sizes(text, [&](const std::string& size) {
    const std::optional<double> value = value_of(size, ranks, scale);
    if (!value) return "{" + size + "}";
    if (!(*value <= kMost))
      fail_usage("{}: the size {{{}}} is {:g}: expected at most {:g}", text, size, *value, kMost);
    return std::to_string(std::max<std::int64_t>(1, std::llround(*value)));
  });
}

Suite resolve_suite(const Path& file, const SuiteWords& words, std::int64_t gpus) {
  auto suite = load_config<Suite>(file);
  check_suite(suite, file);
  SuiteBase& base = suite.base;
  if (words.ranks > 0) base.ranks = words.ranks;
  if (base.ranks == 0) base.ranks = std::max<std::int64_t>(1, gpus);
  if (words.scale > 0) base.scale = words.scale;
  if (base.scale == 0)
    base.scale = std::min(1.0, static_cast<double>(base.ranks) / static_cast<double>(base.published_gpus));
  if (!is_scaled(suite)) base.scale = 1;
  const Path beside = (file.parent_path() / base.config).lexically_normal();
  if (base.config.is_relative() && std::filesystem::exists(beside)) base.config = beside;
  suite.data.generate = with_sizes(suite.data.generate, base.ranks, base.scale);
  suite.data.prepare = with_sizes(suite.data.prepare, base.ranks, base.scale);
  std::vector<std::string> common = std::exchange(base.set, {});
  for (SuiteExperiment& experiment : suite.experiments) {
    if (experiment.ranks == 0) experiment.ranks = base.ranks;
    experiment.set.insert(experiment.set.begin(), common.begin(), common.end());
    experiment.set.insert(experiment.set.end(), words.set.begin(), words.set.end());
    resolve(experiment.set, experiment.ranks, base.scale);
  }
  leave_out_larger(suite);
  return suite;
}

std::vector<PlannedRun> plan_suite(const Suite& suite, const Path& dataset,
                                   const std::vector<std::string>& only) {
  std::vector<PlannedRun> runs;
  for (const SuiteExperiment& experiment : suite.experiments) {
    if (!is_wanted(suite, only, experiment.name)) continue;
    PlannedRun run;
    run.name = experiment.name;
    run.config = suite.base.config;
    run.ranks = experiment.ranks;
    if (!dataset.empty()) run.set.push_back("data.path=" + toml_quoted(dataset.string()));
    run.set.insert(run.set.end(), experiment.set.begin(), experiment.set.end());
    try {
      run.options = load_config<RunOptions>(run.config, run.set);
      check_consistency(run.options);
    } catch (const UsageError& error) {
      fail_usage("experiment {}: {}", experiment.name, error.what());
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string scale_text(const Suite& suite) {
  const SuiteBase& base = suite.base;
  std::string text;
  if (base.ranks < base.published_gpus) text = fmt::format("{} of {} GPUs", base.ranks, base.published_gpus);
  if (base.scale != 1)
    text += fmt::format("{}sizes with a scale are {:.4g} of the published ones", text.empty() ? "" : "; ",
                        base.scale);
  if (!base.left_out.empty())
    text += fmt::format("{}left out, because they need more ranks: {}", text.empty() ? "" : "; ",
                        fmt::join(base.left_out, ", "));
  return text;
}

}  // namespace hstu
