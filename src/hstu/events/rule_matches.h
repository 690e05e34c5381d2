// How many events of a log satisfy the conditions of a schema's rules, so that a condition that matches
// nothing is noticed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/events/schema.h"

namespace hstu {

// [rule][condition]: events that satisfy the rule's conditions up to and including this one. The rules are
// the schema's actions in their order, then `rankable`.
using RuleMatches = std::vector<std::vector<std::int64_t>>;

void add_matches(const RuleMatches& part, RuleMatches& total);

// A condition that no event satisfies together with those before it in its list.
struct IdleCondition {
  std::string rule;               // "action \"viewed\"", "rankable"
  Condition condition;            // the first such condition of the rule
  std::vector<Condition> before;  // the conditions before it, which some events satisfy
};

// At most one for each rule.
std::vector<IdleCondition> idle_conditions(const Schema& schema, const RuleMatches& matches);

}  // namespace hstu
