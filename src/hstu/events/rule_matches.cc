#include "hstu/events/rule_matches.h"

#include <algorithm>

#include <fmt/format.h>

namespace hstu {

void add_matches(const RuleMatches& part, RuleMatches& total) {
  if (total.empty()) {
    total = part;
    return;
  }
  for (std::size_t rule = 0; rule < part.size(); ++rule) {
    std::transform(part[rule].begin(), part[rule].end(), total[rule].begin(), total[rule].begin(),
                   std::plus<>());
  }
}

std::vector<IdleCondition> idle_conditions(const Schema& schema, const RuleMatches& matches) {
  std::vector<IdleCondition> idle;
  const auto examine = [&](const std::string& rule, const std::vector<Condition>& conditions,
                           std::size_t place) {
    if (place >= matches.size()) return;
    const auto& counts = matches[place];
    const auto found = std::find(counts.begin(), counts.end(), 0);
    if (found == counts.end()) return;
    const auto at = conditions.begin() + (found - counts.begin());
    idle.push_back({.rule = rule, .condition = *at, .before = {conditions.begin(), at}});
  };
  for (std::size_t a = 0; a < schema.actions.size(); ++a) {
    examine(fmt::format("action \"{}\"", schema.actions[a].name), schema.actions[a].when, a);
  }
  examine("rankable", schema.rankable, schema.actions.size());
  return idle;
}

}  // namespace hstu
