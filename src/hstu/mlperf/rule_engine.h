// Applies rules to the lines of a log in the order and with the side effects of the official checker: one set
// of rules after another over all lines, each with a state of its own.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hstu/mlperf/log_lines.h"

namespace hstu {

// What a set of rules remembers of earlier lines.
struct RuleState {
  bool init_started = false, init_stopped = false, run_started = false;
  double first_init_ms = 9e99, init_limit_minutes = 0;
  std::optional<double> batch, rate, interval, first_evaluation;
  std::pair<double, double> band{0, -1};  // no rate is in it before global_batch_size
  std::string next;                       // the set of rules that follows
};

using Condition = std::function<bool(const MllogLine&, const RuleState&)>;

struct KeyRule {
  enum class Count { one, some, any };

  std::string_view key;
  Count count = Count::one;
  // Of every line with the key; of submission_* keys of the first. What it says if it fails.
  std::vector<std::pair<Condition, std::string>> conditions = {};
  std::function<void(const MllogLine&, RuleState&)> then = {};  // after them
  std::vector<std::string_view> or_keys = {};                   // one line with the key or with one of these
  std::pair<Condition, std::string> first = {};                 // of the first line
  std::pair<Condition, std::string> once = {};                  // of one line at least, if there is any
};
using Rules = std::vector<KeyRule>;

class RuleEngine {
 public:
  explicit RuleEngine(const MllogFile& log) : log_(log) {}
  // Returns the state at the end. A key of these rules forgets what earlier rules found of it.
  RuleState apply(const Rules& rules);
  std::vector<std::string> errors() const;
  std::vector<std::string> warnings() const;

 private:
  void check_line(const KeyRule& rule, const MllogLine& line, bool is_first, RuleState& state);
  void count_lines(const KeyRule& rule, const std::vector<const MllogLine*>& lines);

  const MllogFile& log_;
  std::map<std::string, std::string, std::less<>> of_keys_, warnings_;
  std::vector<std::string> others_;
};

// Values as Python compares them: truth values are numbers, and nothing else is.
std::optional<double> as_number(const Json& value);
bool is_integral(const Json& value);

}  // namespace hstu
