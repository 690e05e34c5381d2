// A server of a small model, and clients of Python's standard library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/serve/json_requests.h"
#include "hstu/serve/serve.h"
#include "score/score_fixture.h"

namespace hstu::testing {

class Serve : public Score {
 protected:
  static CommandResult client(const std::string& words) {
    return run_command("python3 " + std::string(HSTU_SOURCE_DIR) + "/tests/serve/client.py " + words);
  }
  static CommandResult exchanges(const std::string& words) {
    return run_command("python3 " + std::string(HSTU_SOURCE_DIR) + "/tests/serve/exchanges.py " + words);
  }
  ServeOptions serve_options(const Path& model) const {
    ServeOptions options;
    options.model = {.model = model, .device = "host", .cache_bytes = 1 << 20};
    options.http.port = 0;
    options.http.request_seconds = 0.5;
    options.http.most_body_bytes = 100'000;
    options.watch_seconds = 0.05;
    return options;
  }
  // A request of the user's events in the dataset.
  Json body_of(std::int64_t user, const std::vector<std::int64_t>& items) const {
    const RequestEvents events = events_of(user);
    Json body{{"user", id_of_user(user)},
              {"time", 25'500},
              {"events", {{"item", events.item}, {"time", events.time}, {"action", events.action}}}};
    if (!items.empty()) body["items"] = items;
    return body;
  }
  // One such request in binary.
  std::string binary_body_of(std::int64_t user, const std::vector<std::int64_t>& items, std::int64_t k = 0,
                             std::int64_t flags = 0) const {
    const RequestEvents events = events_of(user);
    std::string body("HSTQ1\0\0\0", 8);
    const auto put = [&](std::int64_t number) { body.append(reinterpret_cast<const char*>(&number), 8); };
    for (const std::int64_t number : {std::int64_t{1}, id_of_user(user), std::int64_t{25'500},
                                      std::ssize(events.item), std::ssize(items), k, flags})
      put(number);
    for (const auto& column : {events.item, events.time})
      for (const std::int64_t number : column) put(number);
    body.append(events.action.begin(), events.action.end());
    body.resize((body.size() + 7) / 8 * 8);
    for (const std::int64_t item : items) put(item);
    return body;
  }
  // As the server should answer with this model.
  static std::string answer(RequestScorer& model, const Json& body, Asked asked) {
    const RequestBody read = read_json_requests(body.dump(), asked, model.form(), model.tasks());
    std::vector<const ScoreRequest*> requests;
    for (const ScoreRequest& request : read.requests) {
      model.check(request);
      requests.push_back(&request);
    }
    std::vector<ScoreAnswer> answers = model.answer(requests);
    for (std::size_t i = 0; i < answers.size(); ++i)
      answers[i].untrained_items = model.untrained_items(*requests[i]);
    return write_json_answers(answers, read.is_list, asked, model.version(), model.form(), model.tasks());
  }
  static std::string get(const Server& server, const char* path) {
    return client(fmt::format("get {} {}", server.port(), path)).text;
  }
  // Until /metrics has the words.
  static bool counts(const Server& server, const std::string& words) {
    for (int look = 0; look < 200; ++look) {
      if (get(server, "/metrics").find(words) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  static bool serves(const Server& server, const std::string& model) {
    for (int look = 0; look < 1000 && server.model() != model; ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return server.model() == model;
  }
};

}  // namespace hstu::testing
