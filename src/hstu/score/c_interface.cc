// include/hstu/score.h.
#include "hstu/base/c_interface.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/thread_limit.h"
#include "hstu/base/threads.h"
#include "hstu/score.h"
#include "hstu/score/request_queue.h"

struct hstu_scorer {
  hstu::OfOneProcess process;
  std::shared_ptr<hstu::RequestScorer> model;
  std::vector<std::string> tasks;
  std::unique_ptr<hstu::RequestQueue> queue;
};

namespace {

using hstu::Asked;
using hstu::ScoreAnswer;
using hstu::ScoreRequest;

constexpr std::int64_t kMostNumbers = std::int64_t{1} << 40;

template <typename Body>
hstu_score_status guarded(hstu_score_status of_usage, const Body& body) {
  hstu_score_status of_failure = HSTU_SCORE_FAILED;
  const bool done = hstu::succeeds([&] {
    try {
      body();
    } catch (const hstu::UsageError&) {
      of_failure = of_usage;
      throw;
    }
  });
  return done ? HSTU_SCORE_OK : of_failure;
}

template <typename Struct>
void check_size(const Struct* s, const char* name) {
  if (s == nullptr) hstu::fail_usage("{} is NULL", name);
  if (s->size != sizeof(Struct))
    hstu::fail_usage(
        "{} has {} bytes, this library's has {}: call {}_init first, and compile with this library's "
        "hstu/score.h",
        name, s->size, sizeof(Struct), name);
}

void check_range(const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    hstu::fail_usage("options.{}: expected {} to {}, found {}", name, least, most, value);
}

// OpenMP ends a process whose threads the system does not start.
void check_threads(std::int32_t threads) {
  check_range("threads", threads, 0, hstu::kMostThreads);
  if (threads == 0) return;
  const int before = hstu::threads();  // of the calling thread
  hstu::set_threads(threads);
  const bool start = hstu::succeeds([] { hstu::check_threads_start(); });
  hstu::set_threads(before);
  if (!start) hstu::fail("{}", hstu::last_error());
}

// More numbers than any memory has are a mistake of the caller.
void check_count(const char* name, std::int64_t count) {
  if (count < 0 || count > kMostNumbers)
    hstu::fail_usage("{}: expected at most {} of them, found {}", name, kMostNumbers, count);
}

template <typename T>
std::vector<T> list(const T* values, std::int64_t count, const char* name) {
  if (count > 0 && values == nullptr) hstu::fail_usage("{}: expected {} numbers, found NULL", name, count);
  check_count(name, count);
  return count == 0 ? std::vector<T>() : std::vector<T>(values, values + count);
}

ScoreRequest request_of(const hstu_score_request& r, std::size_t columns) {
  check_size(&r, "hstu_score_request");
  ScoreRequest request;
  request.user = r.user;
  if (r.time != std::numeric_limits<std::int64_t>::min()) request.time = r.time;
  if (r.events < -1)
    hstu::fail_usage("events: expected a number of events, or -1 for those of options.data, found {}",
                     r.events);
  if (r.events >= 0) {
    hstu::RequestEvents& events = request.events.emplace();
    events.item = list(r.event_items, r.events, "event_items");
    events.time = list(r.event_times, r.events, "event_times");
    events.action = list(r.event_actions, r.events, "event_actions");
    for (std::size_t c = 0; r.event_contexts != nullptr && c < columns; ++c)
      events.context.push_back(
          list(r.event_contexts + static_cast<std::int64_t>(c) * r.events, r.events, "event_contexts"));
  }
  if (r.contexts != nullptr)
    request.context = list(r.contexts, static_cast<std::int64_t>(columns), "contexts");
  request.items = list(r.items, r.item_count, "items");
  return request;
}

// Calls change(request) for each of them.
template <typename Change>
std::vector<ScoreAnswer> answers_of(hstu_scorer* scorer, const hstu_score_request* requests,
                                    std::int64_t count, const Change& change) {
  if (scorer == nullptr) hstu::fail_usage("scorer is NULL");
  scorer->process.check_is_ours("scorer");
  check_count("requests", count);
  if (count > 0 && requests == nullptr) hstu::fail_usage("requests: expected {}, found NULL", count);
  std::vector<ScoreRequest> all;
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      all.push_back(request_of(requests[i], scorer->model->form().columns()));
      change(all.back());
      scorer->queue->check(*scorer->model, all.back());
    } catch (const hstu::UsageError& e) {
      hstu::fail_request(static_cast<std::size_t>(i), e);
    }
  }
  return scorer->queue->answer(std::move(all));
}

template <typename T>
void check_output(const T* to, std::int64_t count, const char* name) {
  if (count > 0 && to == nullptr) hstu::fail_usage("{} is NULL", name);
}

}  // namespace

std::int32_t hstu_score_version() {
  return HSTU_SCORE_VERSION;
}

const char* hstu_score_error() {
  return hstu::last_error().c_str();
}

void hstu_score_options_init(hstu_score_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->size = sizeof(hstu_score_options);
  options->most_requests = hstu::RequestQueueOptions().most;
}

void hstu_score_request_init(hstu_score_request* request) {
  if (request == nullptr) return;
  *request = {};
  request->size = sizeof(hstu_score_request);
  request->time = std::numeric_limits<std::int64_t>::min();
  request->events = -1;
}

hstu_score_status hstu_score_open(const hstu_score_options* options, hstu_scorer** scorer) {
  if (scorer != nullptr) *scorer = nullptr;
  const hstu_score_status status = guarded(HSTU_SCORE_BAD_MODEL, [&] {
    check_size(options, "hstu_score_options");
    if (scorer == nullptr) hstu::fail_usage("scorer is NULL");
    if (options->model == nullptr) hstu::fail_usage("options.model is NULL: name the folder of an export");
    check_range("cache_bytes", options->cache_bytes, 0, std::int64_t{1} << 50);
    check_range("cache_behind", options->cache_behind, 0, std::int64_t{1} << 50);
    check_range("batch_size", options->batch_size, 0, std::int64_t{1} << 24);
    check_range("most_requests", options->most_requests, 1, std::int64_t{1} << 20);
    check_threads(options->threads);
    const auto text = [](const char* word) { return std::string(word == nullptr ? "" : word); };
    auto opened = std::make_unique<hstu_scorer>();
    opened->model = std::make_shared<hstu::RequestScorer>(
        hstu::RequestScorerOptions{.model = options->model,
                                   .checkpoint = text(options->checkpoint),
                                   .data = text(options->data),
                                   .device = text(options->device),
                                   .cache_bytes = options->cache_bytes,
                                   .cache_behind = options->cache_behind,
                                   .batch_size = options->batch_size});
    opened->tasks = opened->model->tasks();
    opened->queue = std::make_unique<hstu::RequestQueue>(
        opened->model,
        hstu::RequestQueueOptions{.most = options->most_requests, .threads = options->threads});
    *scorer = opened.release();
  });
  // Also a file that cannot be read or was altered.
  return status == HSTU_SCORE_OK ? HSTU_SCORE_OK : HSTU_SCORE_BAD_MODEL;
}

void hstu_score_close(hstu_scorer* scorer) {
  if (scorer != nullptr && scorer->process.is_ours()) delete scorer;
}

std::int64_t hstu_score_tasks(const hstu_scorer* scorer) {
  return scorer == nullptr ? 0 : std::ssize(scorer->tasks);
}

const char* hstu_score_task(const hstu_scorer* scorer, std::int64_t task) {
  return task < 0 || task >= hstu_score_tasks(scorer) ? nullptr
                                                      : scorer->tasks[static_cast<std::size_t>(task)].c_str();
}

std::int64_t hstu_score_width(const hstu_scorer* scorer) {
  return scorer == nullptr ? 0 : scorer->model->width();
}

std::int64_t hstu_score_catalogue(const hstu_scorer* scorer) {
  return scorer == nullptr ? 0 : scorer->model->catalogue_size();
}

std::int64_t hstu_score_columns(const hstu_scorer* scorer) {
  return scorer == nullptr ? 0 : static_cast<std::int64_t>(scorer->model->form().columns());
}

const char* hstu_score_column(const hstu_scorer* scorer, std::int64_t column) {
  if (column < 0 || column >= hstu_score_columns(scorer)) return nullptr;
  return scorer->model->form().manifest().context[static_cast<std::size_t>(column)].c_str();
}

std::int64_t hstu_score_code(const hstu_scorer* scorer, std::int64_t column, const char* text) {
  std::int64_t code = -1;
  guarded(HSTU_SCORE_BAD_REQUEST, [&] {
    if (scorer == nullptr || text == nullptr)
      hstu::fail_usage("{} is NULL", scorer == nullptr ? "scorer" : "text");
    const hstu::RequestForm& form = scorer->model->form();
    const auto columns = static_cast<std::int64_t>(form.columns());
    if (column < 0 || column >= columns)
      hstu::fail_usage("column: expected a number of 0 to {}, found {}", columns - 1, column);
    code = form.code_of(static_cast<std::size_t>(column), text).value_or(0);
  });
  return code;
}

std::int64_t hstu_score_untrained_items(const hstu_scorer* scorer) {
  if (scorer == nullptr || !scorer->process.is_ours()) return 0;
  return scorer->queue->counts().untrained_items;
}

const char* hstu_score_model(const hstu_scorer* scorer) {
  return scorer == nullptr ? nullptr : scorer->model->version().c_str();
}

hstu_score_status hstu_score(hstu_scorer* scorer, const hstu_score_request* requests, std::int64_t count,
                             float* scores) {
  return guarded(HSTU_SCORE_BAD_REQUEST, [&] {
    check_output(scores, count, "scores");
    float* to = scores;
    for (const ScoreAnswer& answer :
         answers_of(scorer, requests, count, [](ScoreRequest& r) { r.asked = Asked::scores; }))
      to = std::copy(answer.scores.begin(), answer.scores.end(), to);
  });
}

hstu_score_status hstu_score_top(hstu_scorer* scorer, const hstu_score_request* requests, std::int64_t count,
                                 std::int64_t k, std::int32_t exclude_seen, std::int64_t* items,
                                 float* scores, std::int64_t* found) {
  return guarded(HSTU_SCORE_BAD_REQUEST, [&] {
    check_output(items, count, "items");
    check_output(scores, count, "scores");
    check_output(found, count, "found");
    if (k < 1) hstu::fail_usage("k: expected at least 1, found {}", k);
    if (exclude_seen < 0 || exclude_seen >= HSTU_SCORE_SEEN_BY(0x100) ||
        (exclude_seen > 1 && (exclude_seen & 0xff) != 0))
      hstu::fail_usage("exclude_seen: expected 0, 1 or HSTU_SCORE_SEEN_BY(actions), found {}", exclude_seen);
    if (k > kMostNumbers) hstu::fail_usage("k: expected at most {}, found {}", kMostNumbers, k);
    const std::vector<ScoreAnswer> answers = answers_of(scorer, requests, count, [&](ScoreRequest& r) {
      r.asked = Asked::top;
      r.top = k;
      r.exclude_seen = exclude_seen != 0;
      r.seen_actions = static_cast<std::uint8_t>(exclude_seen >> 8);
    });
    const std::size_t tasks = std::max<std::size_t>(scorer->tasks.size(), 1);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const ScoreAnswer& answer = answers[i];
      found[i] = std::ssize(answer.items);
      const std::size_t first = i * static_cast<std::size_t>(k);
      for (std::size_t r = 0; r < answer.items.size(); ++r) {
        items[first + r] = answer.items[r];
        scores[first + r] = answer.scores[r * tasks];
      }
    }
  });
}

hstu_score_status hstu_score_vectors(hstu_scorer* scorer, const hstu_score_request* requests,
                                     std::int64_t count, float* vectors, std::int64_t* found) {
  return guarded(HSTU_SCORE_BAD_REQUEST, [&] {
    check_output(vectors, count, "vectors");
    check_output(found, count, "found");
    const std::vector<ScoreAnswer> answers =
        answers_of(scorer, requests, count, [](ScoreRequest& r) { r.asked = Asked::vectors; });
    const std::int64_t width = scorer->model->width();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      float* const to = vectors + static_cast<std::int64_t>(i) * width;
      std::fill_n(to, width, 0.0F);
      std::copy(answers[i].scores.begin(), answers[i].scores.end(), to);
      found[i] = answers[i].scores.empty() ? 0 : 1;
    }
  });
}
