#include "hstu/score/request_queue.h"

#include <algorithm>
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
  if (options_.waiting > 0 && std::ssize(waiting_) >= options_.waiting)
    throw QueueIsFull(fmt::format("{} requests are waiting: try again later", waiting_.size()));
  waiting_.push_back(std::move(waiting));
  waiting_count_ = std::ssize(waiting_);
}

void RequestQueue::submit(const Model& model, ScoreRequest request, Done done) {
  Waiting waiting{model, std::move(request), std::move(done)};
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
  counts.waiting = std::ssize(waiting_);
  return counts;
}

// The first requests that wait, as far as they are for one model. False: there are none and will be none.
bool RequestQueue::take(std::vector<Waiting>& batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
  if (waiting_.empty()) return false;
  const auto full = [&] { return ends_ || std::ssize(waiting_) >= options_.most; };
  if (options_.wait_seconds > 0)
    changed_.wait_until(lock,
                        waiting_.front().since + std::chrono::duration_cast<Clock::duration>(
                                                     std::chrono::duration<double>(options_.wait_seconds)),
                        full);
  const Model model = waiting_.front().model;
  while (!waiting_.empty() && waiting_.front().model == model && std::ssize(batch) < options_.most) {
    batch.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  waiting_count_ = std::ssize(waiting_);
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
  {
    const std::scoped_lock lock(mutex_);
    counts_.failed += std::ssize(given.batch);
  }
  for (const Waiting& waiting : given.batch) waiting.done({}, std::current_exception());
}

void RequestQueue::begin(Given& given) {
  std::vector<const ScoreRequest*> requests;
  requests.reserve(given.batch.size());
  for (const Waiting& waiting : given.batch) requests.push_back(&waiting.request);
  try {
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
    counts_.requests += std::ssize(given.batch);
    for (const Waiting& waiting : given.batch) counts_.untrained_items += waiting.untrained_items;
    ++counts_.batches;
    counts_.busy_seconds += seconds_between(std::exchange(busy_since_, now), now);
    counts_.cache = cache == nullptr ? HistoryCacheCounts() : cache->counts();
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    answers[i].untrained_items = given.batch[i].untrained_items;
    given.batch[i].done(std::move(answers[i]), nullptr);
  }
  given = {};  // and with it the model, if another one has replaced it
}

void RequestQueue::work(int threads) {
  if (threads > 0) set_threads(threads);
  Given given, next;
  while (true) {
    const bool is_given = !given.batch.empty();
    if (!is_given || is_full_before(given)) {
      if (!take(next.batch)) break;
      if (!is_given) busy_since_ = Clock::now();
      begin(next);
    }
    if (is_given) finish(given);
    std::swap(given, next);
  }
}

}  // namespace hstu
