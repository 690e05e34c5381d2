#include "hstu/objective/evaluation_result.h"

#include <array>
#include <utility>

#include "hstu/base/contains.h"

namespace hstu {
namespace {

Json to_json(const ScoredWindow& scored) {
  return {{"window", scored.window},
          {"samples", scored.samples},
          {"first_time", scored.first_time},
          {"last_time", scored.last_time}};
}

ScoredWindow scored_window_from_json(const Json& json) {
  ScoredWindow scored;
  json.at("window").get_to(scored.window);
  json.at("samples").get_to(scored.samples);
  json.at("first_time").get_to(scored.first_time);
  json.at("last_time").get_to(scored.last_time);
  return scored;
}

void add_parts(const EvaluationResult& result, MetricSpecs specs, Json& json) {
  if (result.next_window) json["next_window"] = to_json(*result.next_window);
  if (!result.undefined.empty()) json["undefined"] = result.undefined;
  if (!result.unanswered.empty()) json["unanswered"] = result.unanswered;
  if (!result.bad_ids.empty()) json["bad_ids"] = result.bad_ids;
  for (const auto& [task, measures] : result.tasks)
    json["tasks"][task] = to_json(measures.in_order_of(specs));
  for (const auto& [name, measures] : result.item_baselines) json["item_baselines"][name] = to_json(measures);
  for (const auto& [name, measures] : result.parts) json["parts"][name] = to_json(measures);
}

// Of a state, beside the metrics in constant memory.
constexpr std::array kParts{"model", "baseline",       "lists",     "bad_ids",     "tasks",
                            "parts", "item_baselines", "undefined", "next_window", "unanswered"};

}  // namespace

std::optional<double> EvaluationResult::find(std::string_view metric) const {
  const std::optional<double> value = model.find(metric);
  return value ? value : lists.find(metric);
}

Json to_json(const EvaluationResult& result, MetricSpecs specs) {
  Measures all = result.model.in_order_of(specs);
  all.add(result.estimate);
  for (const MetricSpec& spec : specs)
    if (spec.logs_baseline) all.add("baseline_" + std::string(spec.name), result.baseline.find(spec.name));
  all.add(result.lists);
  Json json = to_json(all);
  add_parts(result, specs, json);
  return json;
}

Json evaluation_state(const EvaluationResult& result) {
  Json state{{"model", to_json(result.model)}, {"baseline", to_json(result.baseline)}};
  state.update(to_json(result.estimate));
  if (!result.lists.empty()) state["lists"] = to_json(result.lists);
  add_parts(result, {}, state);
  return state;
}

EvaluationResult evaluation_from_state(const Json& state) {
  EvaluationResult result;
  result.model = measures_from_json(state.at("model"));
  result.baseline = measures_from_json(state.at("baseline"));
  Json estimate = Json::object();
  for (const auto& [name, value] : state.items())
    if (!contains(kParts, name)) estimate[name] = value;
  result.estimate = measures_from_json(estimate);
  if (state.contains("lists")) result.lists = measures_from_json(state.at("lists"));
  result.bad_ids = state.value("bad_ids", std::map<std::string, std::int64_t>());
  result.unanswered = state.value("unanswered", std::map<std::string, std::int64_t>());
  if (state.contains("next_window")) result.next_window = scored_window_from_json(state.at("next_window"));
  if (state.contains("tasks"))
    for (const auto& [task, measures] : state.at("tasks").items())
      result.tasks[task] = measures_from_json(measures);
  result.undefined = state.value("undefined", std::map<std::string, std::string>());
  for (const auto& [key, named] :
       {std::pair("item_baselines", &result.item_baselines), std::pair("parts", &result.parts)})
    if (state.contains(key))
      for (const auto& [name, measures] : state.at(key).items())
        (*named)[name] = measures_from_json(measures);
  return result;
}

}  // namespace hstu
