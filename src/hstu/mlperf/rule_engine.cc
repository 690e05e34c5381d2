#include "hstu/mlperf/rule_engine.h"

#include <algorithm>
#include <cmath>

#include "hstu/base/error.h"

namespace hstu {

std::optional<double> as_number(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number()) return value.get<double>();
  return std::nullopt;
}

bool is_integral(const Json& value) {
  const auto number = as_number(value);
  return number && std::isfinite(*number) && std::abs(std::nearbyint(*number) - *number) < 0.00001;
}

void RuleEngine::check_line(const KeyRule& rule, const MllogLine& line, bool is_first, RuleState& state) {
  const auto apply = [&](const std::pair<Condition, std::string>& condition) {
    if (condition.first(line, state)) return;
    of_keys_[line.key] =
        fmt::format("line {}: {} = {}: {}", line.number, line.key, line.value.dump(), condition.second);
  };
  if (is_first || !line.key.starts_with("submission_")) {
    for (const auto& condition : rule.conditions) apply(condition);
    if (rule.then) rule.then(line, state);
  }
  if (is_first && rule.first.first) apply(rule.first);
}

void RuleEngine::count_lines(const KeyRule& rule, const std::vector<const MllogLine*>& lines) {
  const std::string key(rule.key);
  if (lines.empty()) {
    if (rule.count == KeyRule::Count::one)
      of_keys_[key] = fmt::format("{} is missing: expected one line", key);
    if (rule.count == KeyRule::Count::some)
      of_keys_[key] = fmt::format("{} is missing: expected a line", key);
    return;
  }
  if (rule.count != KeyRule::Count::one || lines.size() == 1) return;
  const bool same =
      std::ranges::all_of(lines, [&](const MllogLine* line) { return line->value == lines[0]->value; });
  (same ? warnings_ : of_keys_)[key] = fmt::format("{} occurs {} times{}: expected one line", key,
                                                   lines.size(), same ? "" : " with different values");
}

RuleState RuleEngine::apply(const Rules& rules) {
  RuleState state;
  std::map<std::string_view, std::vector<const MllogLine*>> lines;
  std::map<std::string_view, bool> seen_once;
  for (const KeyRule& rule : rules) {
    of_keys_.erase(std::string(rule.key));
    lines[rule.key];
  }
  for (const MllogLine& line : log_.lines) {
    const auto rule = std::ranges::find(rules, std::string_view(line.key), &KeyRule::key);
    if (rule == rules.end()) continue;
    std::vector<const MllogLine*>& earlier = lines[rule->key];
    check_line(*rule, line, earlier.empty(), state);
    earlier.push_back(&line);
    if (rule->once.first && rule->once.first(line, state)) seen_once[rule->key] = true;
  }
  for (const KeyRule& rule : rules) {
    count_lines(rule, lines[rule.key]);
    if (rule.once.first && !lines[rule.key].empty() && !seen_once[rule.key])
      others_.push_back(fmt::format("{}: {}", rule.key, rule.once.second));
    if (rule.or_keys.empty() || !lines[rule.key].empty()) continue;
    if (std::ranges::all_of(rule.or_keys, [&](std::string_view key) { return lines[key].empty(); }))
      others_.push_back(fmt::format("{} is missing: expected a line of it or of {}", rule.key,
                                    fmt::join(rule.or_keys, ", ")));
  }
  return state;
}

std::vector<std::string> RuleEngine::errors() const {
  std::vector<std::string> all = log_.errors;
  if (log_.lines.empty()) all.emplace_back("the log has no line");
  for (const auto& [key, error] : of_keys_) all.push_back(error);
  all.insert(all.end(), others_.begin(), others_.end());
  return all;
}

std::vector<std::string> RuleEngine::warnings() const {
  std::vector<std::string> all;
  for (const auto& [key, warning] : warnings_) all.push_back(warning);
  return all;
}

}  // namespace hstu
