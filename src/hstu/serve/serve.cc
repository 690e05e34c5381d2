#include "hstu/serve/serve.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/json.h"
#include "hstu/base/mapped_ranges.h"
#include "hstu/base/process.h"
#include "hstu/base/terminal.h"
#include "hstu/serve/binary_requests.h"
#include "hstu/serve/json_requests.h"

namespace hstu {
namespace {

constexpr const char* kBinary = "application/octet-stream";
// Bodies with more than this part of the items of a turn wait in a line of their own.
constexpr std::int64_t kSmallPart = 4;

// 4xx: another request would succeed; 503: the same one later.
HttpAnswer failure_answer(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const QueueIsFull& e) {
    return {.status = 503, .body = json_error(e.what())};
  } catch (const UsageError& e) {
    return {.status = 400, .body = json_error(e.what())};
  } catch (const std::bad_alloc&) {
    return {.status = 503, .body = json_error("out of memory")};
  } catch (const std::exception& e) {
    return {.status = 500, .body = json_error(words_of(e))};
  }
}

// The requests of one body, until all have their answers.
class Gathering {
 public:
  Gathering(std::size_t count, std::function<void(std::vector<ScoreAnswer>, std::exception_ptr)> done)
      : left_(count), answers_(count), done_(std::move(done)) {}

  void put(std::size_t i, ScoreAnswer answer, const std::exception_ptr& failure) {
    {
      const std::scoped_lock lock(mutex_);
      answers_[i] = std::move(answer);
      if (failure && !failure_) failure_ = failure;
      if (--left_ > 0) return;
    }
    done_(std::move(answers_), failure_);
  }

 private:
  std::mutex mutex_;
  std::size_t left_;
  std::vector<ScoreAnswer> answers_;
  std::exception_ptr failure_;
  std::function<void(std::vector<ScoreAnswer>, std::exception_ptr)> done_;
};

// Parsed JSON takes up to forty times the bytes of its text: so many values, of which a list or an object
// counts as four.
constexpr std::int64_t kMostValues = 1'048'576;
constexpr std::size_t kBytesOfValue = 128;

// Throws std::bad_alloc now: nlohmann's destructors allocate, and would end the program.
void expect_memory(std::size_t bytes) {
  void* volatile memory = ::operator new(bytes);
  ::operator delete(memory);
}

void check_values(std::string_view json) {
  const auto opened = std::ranges::count(json, '[') + std::ranges::count(json, '{');
  const auto values = 1 + 4 * opened + std::ranges::count(json, ',');
  if (values > kMostValues) fail_usage("more than {} values in one body", kMostValues);
  expect_memory(4 * json.size() + kBytesOfValue * static_cast<std::size_t>(values));
}

RequestBody read_body(const HttpRequest& request, Asked asked, const RequestScorer& model, bool binary) {
  if (binary) return {read_binary_requests(request.body, asked, model.form().columns()), true};
  check_values(request.body);
  return read_json_requests(request.body, asked, model.form(), model.tasks());
}

// Before any of them is computed.
void check_all(RequestQueue& queue, const RequestScorer& model, const RequestBody& body) {
  for (std::size_t i = 0; i < body.requests.size(); ++i) {
    try {
      queue.check(model, body.requests[i]);
    } catch (const UsageError& e) {
      if (!body.is_list) throw;
      fail_request(i, e);
    }
  }
}

// What requests and answers consist of: a model that differs in it is not for the same clients.
Json interface_of(const RequestScorer& model) {
  const RequestForm& form = model.form();
  Json json{{"kind", model.ranks() ? "ranking" : "retrieval"},
            {"vectors", model.has_vectors()},
            {"tasks", model.tasks()},
            {"dataset", form.manifest().name},
            {"texts", Json::array()},
            {"context", form.manifest().context},
            {"context_of_requests", form.of_requests()},
            {"context_of_events", form.of_events()}};
  if (form.users_are_texts()) json["texts"].push_back("user");
  if (form.items_are_texts()) json["texts"].push_back("item");
  for (std::size_t c = 0; c < form.columns(); ++c)
    if (form.has_texts(c)) json["texts"].push_back(form.manifest().context[c]);
  json["actions"] = Json::object();
  for (const ActionBit& action : form.manifest().actions) json["actions"][action.name] = action.bit;
  return json;
}

void check_same_interface(const RequestScorer& served, const RequestScorer& newer) {
  const Json old = interface_of(served), found = interface_of(newer);
  for (const auto& [key, value] : found.items())
    if (value != old[key])
      fail_usage("its {} is {}, and that of the served model {}: hstu serve --any-kind goes over to it", key,
                 value.dump(), old[key].dump());
}

std::optional<Asked> asked_by(const std::string& path) {
  if (path == "/score") return Asked::scores;
  if (path == "/top") return Asked::top;
  if (path == "/vectors") return Asked::vectors;
  return std::nullopt;
}

}  // namespace

Server::Server(const ServeOptions& options) : options_(options) {
  const PublishedExport first = export_at(options.model.model);
  options_.model.model = first.path;
  queue_ = std::make_unique<RequestQueue>(std::make_shared<RequestScorer>(options_.model), options.queue);
  metrics_.add_load(true);
  http_ = std::make_unique<HttpServer>(
      options.http,
      [this](const HttpRequest& request, const HttpServer::Respond& respond) { handle(request, respond); },
      [this](int status, double seconds) { metrics_.add("other", status, seconds); });
  http_->start();
  if (options.watch.empty()) return;
  watch_ = std::make_unique<ModelWatch>(options.watch, first, options.watch_seconds,
                                        [this](const Path& path) { return open_newer(path); });
}

Server::~Server() {
  watch_.reset();
  http_->stop();
  queue_.reset();
}

void Server::drain() {
  is_draining_ = true;
  http_->drain();
}

std::int64_t Server::stop() {
  drain();
  return http_->stop();
}

void Server::handle(const HttpRequest& request, const HttpServer::Respond& respond) {
  const Clock::time_point start = Clock::now();
  const std::optional<Asked> asked = asked_by(request.path);
  const bool is_page = request.path == "/health" || request.path == "/ready" || request.path == "/metrics";
  const std::string path = asked || is_page ? request.path : "other";
  const auto answered = [this, path, start, respond](HttpAnswer answer) {
    metrics_.add(path, answer.status, seconds_since(start));
    respond(std::move(answer));
  };
  try {
    if (!asked && !is_page)
      return answered({.status = 404,
                       .body = json_error("there are /score, /top, /vectors, /health, /ready and /metrics")});
    if (asked ? request.method != "POST" : request.method != "GET" && request.method != "HEAD")
      return answered(
          {.status = 405, .body = json_error(fmt::format("{} is for {}", path, asked ? "POST" : "GET"))});
    if (asked) return answer(request, *asked, answered);
    if (path == "/health") return answered({.body = health()});
    if (path == "/ready") return answered(ready());
    answered({.content_type = "text/plain; version=0.0.4",
              .body = metrics_.text(queue_->counts(), http_->counts(), model())});
  } catch (...) {
    answered(failure_answer(std::current_exception()));
  }
}

void Server::answer(const HttpRequest& request, Asked asked, const HttpServer::Respond& respond) {
  const RequestQueue::Model model = queue_->model();
  const bool binary = request.media_type == kBinary;
  RequestBody body = read_body(request, asked, *model, binary);
  metrics_.add_unknown_texts(body.unknown_texts);
  const std::size_t count = body.requests.size();
  const std::int64_t most = options_.queue.waiting > 0 ? std::min(options_.most_users, options_.queue.waiting)
                                                       : options_.most_users;
  if (std::ssize(body.requests) > most) fail_usage("{} requests in one body: at most {}", count, most);
  // Of /top the items of the answers count too; of several users also those that are scored without being
  // named.
  std::int64_t candidates = 0, scored = 0, answered = 0;
  for (const ScoreRequest& one : body.requests) {
    candidates += std::ssize(one.items), scored += model->scored_items(one);
    answered += std::min(one.top, one.items.empty() ? model->catalogue_size() : std::ssize(one.items));
  }
  if (body.requests.size() > 1) candidates = std::max({candidates, scored, answered});
  if (candidates > options_.most_candidates)
    fail_usage("{} candidates, or items of lists, in one body: at most {} (hstu serve --most-candidates)",
               candidates, options_.most_candidates);
  check_all(*queue_, *model, body);
  const bool is_large =
      std::ssize(body.requests) > options_.queue.most || scored > model->most_items() / kSmallPart;
  const bool is_list = body.is_list;
  const auto done = [model, asked, binary, is_list, respond](const std::vector<ScoreAnswer>& answers,
                                                             const std::exception_ptr& failure) {
    try {
      if (failure) return respond(failure_answer(failure));
      HttpAnswer answer{.content_type = kBinary, .body = {}};
      if (binary) {
        answer.body = write_binary_answers(answers, model->version());
      } else {
        std::size_t values = answers.size();
        for (const ScoreAnswer& one : answers) values += one.items.size() + one.scores.size();
        expect_memory(kBytesOfValue * values);
        answer = {.body = write_json_answers(answers, is_list, asked, model->version(), model->form(),
                                             model->tasks())};
      }
      model->check_files();
      respond(std::move(answer));
    } catch (...) {
      respond(failure_answer(std::current_exception()));
    }
  };
  if (count == 0) return done({}, nullptr);
  const auto gathering = std::make_shared<Gathering>(count, done);
  for (std::size_t i = 0; i < count; ++i) {
    const auto put = [gathering, i](ScoreAnswer one, const std::exception_ptr& failure) {
      gathering->put(i, std::move(one), failure);
    };
    try {
      queue_->submit(model, std::move(body.requests[i]), is_large, put);
    } catch (...) {
      put({}, std::current_exception());
    }
  }
}

std::string Server::health() const {
  const RequestQueue::Model model = queue_->model();
  Json json{{"status", "ok"},
            {"model", model->version()},
            {"width", model->width()},
            {"events_in_requests", !model->has_users()},
            {"history_cache", model->cache() != nullptr}};
  json.update(interface_of(*model));
  return json.dump() + "\n";
}

HttpAnswer Server::ready() const {
  try {
    check(!is_draining_, "the server is about to end");
    queue_->model()->check_files();
  } catch (const Error& e) {
    return {.status = 503, .body = json_error(e.what())};
  }
  return {.body = "{\"status\":\"ready\"}\n"};
}

bool Server::open_newer(const Path& path) {
  bool is_opened = false;
  try {
    const Clock::time_point start = Clock::now();
    RequestScorerOptions options = options_.model;
    options.model = path;
    options.checkpoint = {};
    auto opened = std::make_shared<RequestScorer>(options);
    is_opened = true;
    const std::string version = opened->version();
    if (version != model()) {
      if (!options_.any_kind) check_same_interface(*queue_->model(), *opened);
      queue_->replace(std::move(opened));
      metrics_.add_load(true);
      print_note("model {} from {}, opened in {:.2f} s\n", version, path.string(), seconds_since(start));
    }
    failure_.clear();
  } catch (const std::exception& e) {
    const std::string failure = fmt::format("{}: the model stays as it is: {}\n", path.string(), words_of(e));
    if (failure == failure_) return is_opened;  // of the look before
    metrics_.add_load(false);
    print_note("{}", failure);
    failure_ = failure;
  }
  return is_opened;
}

void serve(const ServeOptions& options, const std::atomic<bool>& stop) {
  std::signal(SIGPIPE, SIG_IGN);  // who reads the notes may end
  survive_lost_pages();
  Server server(options);
  print_note("model {}: serving on http://{}:{}\n", server.model(), options.http.address, server.port());
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  while (!stop) wait();
  server.drain();
  print_note("stopping: answering what was accepted\n");
  for (const Clock::time_point begin = Clock::now(); seconds_since(begin) < options.drain_seconds;) wait();
  const std::int64_t lost = server.stop();
  check(lost == 0,
        "{} of the accepted requests have no whole answer: their clients did not take it within {} s "
        "(hstu serve --request-seconds), or there was no memory for it",
        lost, options.http.request_seconds);
}

}  // namespace hstu
