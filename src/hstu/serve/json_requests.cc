#include "hstu/serve/json_requests.h"

#include <algorithm>
#include <limits>

#include "hstu/base/calendar.h"
#include "hstu/base/error.h"
#include "hstu/base/json.h"
#include "hstu/base/json_text.h"
#include "hstu/base/text.h"
#include "hstu/dataset/counted_times.h"
#include "hstu/dataset/names.h"

namespace hstu {
namespace {

// Beyond it, JSON's readers of many languages round whole numbers.
constexpr std::int64_t kLargestExact = std::int64_t{1} << 53;

Json parse_body(std::string_view body) {
  try {
    return parse_json(body);
  } catch (const Error& e) {
    fail_usage("body: {}", e.what());
  }
}

// "7.5", "a text", "a list".
std::string shown(const Json& value) {
  if (value.is_number()) return value.dump();
  return value.is_array()    ? "a list"
         : value.is_string() ? "a text"
         : value.is_object() ? "an object"
                             : value.dump();
}

std::int64_t integer(const Json& value, std::string_view field) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() ||
                     value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  if (!fits) fail_usage("{}: expected a whole number of 64 bits, found {}", field, shown(value));
  return value.get<std::int64_t>();
}

// Also in digits, for clients whose numbers are doubles.
std::int64_t number(const Json& value, std::string_view field) {
  if (!value.is_string()) return integer(value, field);
  const auto& text = value.get_ref<const std::string&>();
  const auto whole = parse_number<std::int64_t>(text);
  if (!whole) fail_usage("{}: expected a whole number of 64 bits, found \"{}\"", field, text);
  return *whole;
}

// Ids that are hashes of texts are given as those texts.
std::int64_t id(const Json& value, bool texts, std::string_view field) {
  if (!texts) return number(value, field);
  if (!value.is_string())
    fail_usage("{}: expected a text, as the dataset names them, found {}", field, shown(value));
  if (value.get_ref<const std::string&>().empty()) fail_usage("{}: an empty text is no id", field);
  return id_of_text(value.get_ref<const std::string&>());
}

const Json& list(const Json& value, std::string_view field) {
  if (!value.is_array()) fail_usage("{}: expected a list, found {}", field, shown(value));
  return value;
}

class JsonRequest {
 public:
  JsonRequest(const RequestForm& form, const std::vector<std::string>& tasks) : form_(form), tasks_(tasks) {}

  ScoreRequest read(const Json& json, Asked asked) {
    if (!json.is_object()) fail_usage("expected an object, found {}", shown(json));
    ScoreRequest request;
    request.asked = asked;
    request.context.assign(form_.columns(), 0);
    std::vector<bool> given(form_.columns());
    for (const auto& [key, value] : json.items()) {
      if (key == "user") {
        request.user = id(value, form_.users_are_texts(), "user");
      } else if (key == "time") {
        request.time = seconds(value, "time");
      } else if (key == "events") {
        request.events = events(value);
      } else if (key == "context") {
        context(value, request.context, given);
      } else if (key == "items") {
        for (const Json& item : list(value, "items"))
          request.items.push_back(id(item, form_.items_are_texts(), "items"));
        // No candidates are left of what a client filters: that does not mean all items.
        if (value.empty())
          fail_usage("items: expected at least one candidate{}",
                     asked == Asked::top ? "; leave the field out to rank all items" : "");
      } else if (asked == Asked::top && key == "k") {
        request.top = integer(value, "k");
      } else if (asked == Asked::top && key == "by") {
        request.task = task(value);
      } else if (asked == Asked::top && key == "exclude_seen") {
        exclude_seen(value, request);
      } else {
        fail_usage("unknown field \"{}\"{}", key, suggestion(key, fields(asked)));
      }
    }
    if (asked == Asked::top && !json.contains("k")) fail_usage("k: how many items is missing");
    for (std::size_t c = 0; c < given.size(); ++c)
      if (form_.of_requests()[c] && !given[c])
        fail_usage("context: expected a value of \"{}\"", form_.manifest().context[c]);
    return request;
  }
  std::int64_t unknown_texts() const { return unknown_texts_; }

 private:
  static std::vector<std::string> fields(Asked asked) {
    std::vector<std::string> names{"user", "time", "events", "context", "items"};
    if (asked == Asked::top) names.insert(names.end(), {"k", "by", "exclude_seen"});
    return names;
  }
  std::size_t task(const Json& value) const {
    const std::string name = value.is_string() ? value.get<std::string>() : value.dump();
    const auto found = std::find(tasks_.begin(), tasks_.end(), name);
    if (found == tasks_.end())
      fail_usage("by: the model has no task \"{}\"{}", name, suggestion(name, tasks_));
    return static_cast<std::size_t>(found - tasks_.begin());
  }
  // Whole seconds, or a text that hstu predict reads as a time.
  std::int64_t seconds(const Json& value, std::string_view field) const {
    if (!value.is_string()) return integer(value, field);
    const auto& text = value.get_ref<const std::string&>();
    if (const auto whole = parse_number<std::int64_t>(text)) return *whole;
    const auto date = parse_iso_time(text);
    if (!date)
      fail_usage("{}: expected a time, whole seconds or ISO 8601 such as 2024-05-01T12:30:00Z, found \"{}\"",
                 field, text);
    if (!counts_from_1970(form_.manifest()))
      fail_usage(
          "{}: the times of the histories do not count from 1970: expected a number, found the date {}",
          field, text);
    return date->seconds;
  }
  // A number is never taken for a text: "1" is the text of a cell 1, and the code 1 that of another one.
  std::int64_t context_value(std::size_t column, const Json& value) {
    const std::string& name = form_.manifest().context[column];
    if (!form_.has_texts(column)) return number(value, name);
    if (!value.is_string()) fail_usage("{}: expected a text, \"\" for none, found {}", name, shown(value));
    const auto& text = value.get_ref<const std::string&>();
    const auto code = form_.code_of(column, text);
    if (!code && !text.empty()) ++unknown_texts_;
    return code.value_or(0);
  }
  void context(const Json& value, std::vector<std::int64_t>& to, std::vector<bool>& given) {
    if (!value.is_object()) fail_usage("context: expected an object, found {}", shown(value));
    for (const auto& [name, of_column] : value.items()) {
      const std::size_t column = form_.column(name);
      to[column] = context_value(column, of_column);
      given[column] = true;
    }
  }
  std::uint8_t action(const Json& value) const {
    if (value.is_string()) return form_.action_bits(value.get_ref<const std::string&>());
    const std::int64_t bits = integer(value, "action");
    if ((bits & ~std::int64_t{form_.known_bits()}) != 0)
      fail_usage("action: expected a sum of bits of {}, found {}", form_.known_bits(), bits);
    return static_cast<std::uint8_t>(bits);
  }
  // true, false, or actions.
  void exclude_seen(const Json& value, ScoreRequest& request) const {
    if (!value.is_boolean() && !value.is_string() && !value.is_number_integer())
      fail_usage("exclude_seen: expected true, false or actions, found {}", shown(value));
    request.exclude_seen = value != false;
    if (value.is_boolean()) return;
    request.seen_actions = action(value);
    if (request.seen_actions == 0) fail_usage("exclude_seen: expected true, false or actions, found 0");
  }
  // {"item": [..], "time": [..], "action": [..], NAME: [..]}
  RequestEvents events(const Json& value) {
    if (!value.is_object()) fail_usage("events: expected an object of lists, found {}", shown(value));
    RequestEvents events;
    events.context.resize(form_.columns());
    for (const auto& [name, values] : value.items()) {
      for (const Json& of_event : list(values, name)) {
        if (name == "item") {
          events.item.push_back(id(of_event, form_.items_are_texts(), "events: item"));
        } else if (name == "time") {
          events.time.push_back(seconds(of_event, "events: time"));
        } else if (name == "action") {
          events.action.push_back(action(of_event));
        } else {
          const std::size_t column = form_.column(name);
          events.context[column].push_back(context_value(column, of_event));
        }
      }
    }
    return events;
  }

  const RequestForm& form_;
  const std::vector<std::string>& tasks_;
  std::int64_t unknown_texts_ = 0;
};

Json score_list(const ScoreAnswer& answer, std::size_t tasks) {
  if (tasks <= 1) return answer.scores;
  Json rows = Json::array();
  for (std::size_t i = 0; i < answer.scores.size(); i += tasks)
    rows.push_back(std::vector<float>(answer.scores.begin() + static_cast<std::ptrdiff_t>(i),
                                      answer.scores.begin() + static_cast<std::ptrdiff_t>(i + tasks)));
  return rows;
}

void add_answer(const ScoreAnswer& answer, Asked asked, const RequestForm& form, std::size_t tasks,
                Json& to) {
  if (asked == Asked::vectors) {
    to["vector"] = answer.scores.empty() ? Json(nullptr) : Json(answer.scores);
  } else {
    if (asked == Asked::top) {
      to["items"] = Json::array();
      for (const std::int64_t item : answer.items) {
        if (const auto name = form.item_name(item)) {
          to["items"].push_back(std::string(*name));
        } else if (item > kLargestExact || item < -kLargestExact) {
          to["items"].push_back(std::to_string(item));
        } else {
          to["items"].push_back(item);
        }
      }
    }
    to["scores"] = score_list(answer, tasks);
  }
  to["has_history"] = answer.has_history;
  to["untrained_items"] = answer.untrained_items;
}

}  // namespace

RequestBody read_json_requests(std::string_view body, Asked asked, const RequestForm& form,
                               const std::vector<std::string>& tasks) {
  const Json json = parse_body(body);
  JsonRequest reader(form, tasks);
  RequestBody result;
  if (!json.is_object() || !json.contains("requests")) {
    result.requests.push_back(reader.read(json, asked));
    result.unknown_texts = reader.unknown_texts();
    return result;
  }
  result.is_list = true;
  if (json.size() > 1) fail_usage("expected nothing beside \"requests\"");
  for (const Json& request : list(json["requests"], "requests")) {
    try {
      result.requests.push_back(reader.read(request, asked));
    } catch (const UsageError& e) {
      fail_request(result.requests.size(), e);
    }
  }
  result.unknown_texts = reader.unknown_texts();
  return result;
}

std::string write_json_answers(const std::vector<ScoreAnswer>& answers, bool is_list, Asked asked,
                               std::string_view model, const RequestForm& form,
                               const std::vector<std::string>& tasks) {
  Json json{{"model", model}};
  if (is_list) {
    json["answers"] = Json::array();
    for (const ScoreAnswer& answer : answers)
      add_answer(answer, asked, form, tasks.size(), json["answers"].emplace_back(Json::object()));
  } else {
    add_answer(answers.front(), asked, form, tasks.size(), json);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string json_error(std::string_view text) {
  return Json{{"error", text}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hstu
