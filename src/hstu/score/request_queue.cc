#include "hstu/score/request_queue.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "hstu/base/threads.h"

namespace hstu {

RequestQueue::RequestQueue(Model model, const RequestQueueOptions& options)
    : options_(options), model_(std::move(model)), thread_([this] { work(options_.threads); }) {}

RequestQueue::~RequestQueue() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

RequestQueue::Model RequestQueue::model() const {
  const std::scoped_lock lock(mutex_);
  return model_;
}

void RequestQueue::replace(Model model) {
  const std::scoped_lock lock(mutex_);
  model_.swap(model);
}

void RequestQueue::check(const RequestScorer& model, const ScoreRequest& request) {
  try {
    model.check(request);
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    ++counts_.requests, ++counts_.failed;
    throw;
  }
}

// Under the lock.
void RequestQueue::push(Waiting& waiting) {
  if (options_.waiting > 0 && waiting_count_ >= options_.waiting)
    throw QueueIsFull(fmt::format("{} requests are waiting: try again later", waiting_count_.load()));
  (waiting.is_large ? large_ : waiting_).push_back(std::move(waiting));
  ++waiting_count_;
}

void RequestQueue::submit(const Model& model, ScoreRequest request, bool is_large, Done done) {
  Waiting waiting{model, std::move(request), std::move(done), is_large};
  {
    const std::scoped_lock lock(mutex_);
    push(waiting);
  }
  changed_.notify_one();
}

std::vector<ScoreAnswer> RequestQueue::answer(std::vector<ScoreRequest> requests) {
  std::mutex mutex;
  std::condition_variable answered;
  std::size_t left = requests.size();
  std::vector<ScoreAnswer> answers(requests.size());
  std::vector<std::exception_ptr> failures(requests.size());
  const Model current = model();
  std::vector<Waiting> all;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto done = [&, i](ScoreAnswer answer, const std::exception_ptr& failure) {
      const std::scoped_lock lock(mutex);
      answers[i] = std::move(answer), failures[i] = failure;
      if (--left == 0) answered.notify_one();  // under the lock: the waiting function ends after it
    };
    all.push_back({current, std::move(requests[i]), done});
  }
  std::size_t pushed = 0;
  try {
    const std::scoped_lock queue(mutex_);
    for (; pushed < all.size(); ++pushed) push(all[pushed]);
  } catch (...) {
    for (; pushed < all.size(); ++pushed) all[pushed].done({}, std::current_exception());
  }
  changed_.notify_one();
  std::unique_lock lock(mutex);
  answered.wait(lock, [&] { return left == 0; });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return answers;
}

QueueCounts RequestQueue::counts() const {
  const std::scoped_lock lock(mutex_);
  QueueCounts counts = counts_;
  counts.waiting = waiting_count_;
  return counts;
}

// The next items of a request, as a request of its own.
RequestQueue::Waiting RequestQueue::part_of(Waiting& from, std::int64_t count, bool is_last) {
  if (from.parts == nullptr) from.parts = std::make_shared<Parts>();
  ScoreRequest part = from.model->part_of(from.request, from.begun_items, count);
  const ScoreRequest& r = from.request;
  const auto done = [model = from.model, parts = from.parts, is_last, of = from.done,
                     request = ScoreRequest{.asked = r.asked, .top = r.top, .task = r.task}](
                        const ScoreAnswer& answer, const std::exception_ptr& failure) {
    if (parts->has_failed) return;
    ScoreAnswer& all = parts->answers;
    try {
      if (failure) std::rethrow_exception(failure);
      all.items.insert(all.items.end(), answer.items.begin(), answer.items.end());
      all.scores.insert(all.scores.end(), answer.scores.begin(), answer.scores.end());
      all.has_history = answer.has_history;
      if (is_last) model->join_parts(request, all);
      all.untrained_items = answer.untrained_items;
    } catch (...) {
      parts->has_failed = true;
      return of({}, std::current_exception());
    }
    if (is_last) of(std::move(all), nullptr);
  };
  Waiting waiting{from.model, std::move(part), done};
  waiting.since = from.since;
  waiting.untrained_items = is_last ? from.untrained_items : 0;
  return waiting;
}

// The first requests that wait, as far as they are for one model, with items for one turn. False: there are
// none and will be none.
bool RequestQueue::take(Given& given) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ends_ || waiting_count_ > 0; });
  if (waiting_count_ == 0) return false;
  const auto full = [&] { return ends_ || waiting_count_ >= options_.most; };
  const bool takes_large = waiting_.empty() || (large_is_next_ && !large_.empty());
  std::deque<Waiting>& line = takes_large ? large_ : waiting_;
  if (options_.wait_seconds > 0)
    changed_.wait_until(lock,
                        line.front().since + std::chrono::duration_cast<Clock::duration>(
                                                 std::chrono::duration<double>(options_.wait_seconds)),
                        full);
  const Model model = line.front().model;
  std::vector<Waiting>& batch = given.batch;
  batch.reserve(std::min(line.size(), static_cast<std::size_t>(options_.most)));
  std::int64_t room = model->most_items();
  while (!line.empty() && line.front().model == model && std::ssize(batch) < options_.most) {
    Waiting& first = line.front();
    const std::int64_t items = model->scored_items(first.request) - first.begun_items;
    const bool has_failed = first.parts != nullptr && first.parts->has_failed;
    if (!has_failed && items > room) {
      if (!batch.empty()) break;
      batch.push_back(part_of(first, room, false));
      first.begun_items += room;
      std::rotate(line.begin(), line.begin() + 1, line.end());
      break;
    }
    if (!has_failed) {
      room -= items;
      batch.push_back(first.parts == nullptr ? std::move(first) : part_of(first, items, true));
      ++given.requests;
    }
    line.pop_front();
    --waiting_count_;
  }
  large_is_next_ = !takes_large;
  return true;
}

// False: the batch that the device was given is computed before the next one is full.
bool RequestQueue::is_full_before(const Given& given) const {
  while (!given.begun.is_computed())
    if (waiting_count_.load(std::memory_order_relaxed) >= options_.most) return true;
  return false;
}

// Answers none of a batch, for the exception that is handled.
void RequestQueue::refuse(Given& given) {
  given.is_refused = true;
  given.requests = std::ssize(given.batch);
  {
    const std::scoped_lock lock(mutex_);
    counts_.failed += std::ssize(given.batch);
  }
  for (const Waiting& waiting : given.batch) give(waiting, {}, std::current_exception());
}

// No exception ends the thread: who cannot take an answer (no memory) has none.
void RequestQueue::give(const Waiting& waiting, ScoreAnswer answer,
                        const std::exception_ptr& failure) noexcept {
  try {
    waiting.done(std::move(answer), failure);
  } catch (...) {
  }
}

void RequestQueue::begin(Given& given) {
  try {
    std::vector<const ScoreRequest*> requests;
    requests.reserve(given.batch.size());
    for (const Waiting& waiting : given.batch) requests.push_back(&waiting.request);
    given.begun = given.batch.front().model->begin(requests);
  } catch (...) {
    refuse(given);
  }
}

// Who has an answer finds it counted.
void RequestQueue::finish(Given& given) {
  RequestScorer& model = *given.batch.front().model;
  std::vector<ScoreAnswer> answers;
  try {
    if (!given.is_refused) answers = model.finish(std::move(given.begun));
  } catch (...) {
    refuse(given);
  }
  {
    const HistoryCache* const cache = model.cache();
    const Clock::time_point now = Clock::now();
    const std::scoped_lock lock(mutex_);
    counts_.requests += given.requests;
    for (const Waiting& waiting : given.batch) counts_.untrained_items += waiting.untrained_items;
    ++counts_.batches;
    counts_.busy_seconds += seconds_between(std::exchange(busy_since_, now), now);
    counts_.cache = cache == nullptr ? HistoryCacheCounts() : cache->counts();
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    answers[i].untrained_items = given.batch[i].untrained_items;
    give(given.batch[i], std::move(answers[i]), nullptr);
  }
  given = {};  // and with it the model, if another one has replaced it
}

void RequestQueue::work(int threads) {
  if (threads > 0) set_threads(threads);
  Given given, next;
  while (true) {
    const bool is_given = !given.batch.empty();
    if (!is_given || is_full_before(given)) {
      try {
        if (!take(next)) break;
      } catch (const std::bad_alloc&) {  // of the list of a batch
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      if (next.batch.empty()) continue;  // the last parts of a request that has failed
      if (!is_given) busy_since_ = Clock::now();
      begin(next);
    }
    if (is_given) finish(given);
    std::swap(given, next);
  }
}

}  // namespace hstu
