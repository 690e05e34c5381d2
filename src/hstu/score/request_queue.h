// Requests of many threads in batches for one model: a thread of its own computes, one batch after the other.
// While a GPU computes a batch, the thread makes the next one if it is full: waiting would not make it
// larger. Between batches the model may be replaced.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/score/request_scorer.h"

namespace hstu {

struct RequestQueueOptions {
  std::int64_t most = 256;   // requests of a batch
  double wait_seconds = 0;   // a batch waits so long for more requests, counted from its first
  std::int64_t waiting = 0;  // requests that may wait; 0: any number
  int threads = 0;           // that compute; 0: as OpenMP says
};

// Too many requests are waiting.
struct QueueIsFull : Error {
  using Error::Error;
};

struct QueueCounts {
  std::int64_t requests = 0, failed = 0, batches = 0, waiting = 0;
  std::int64_t untrained_items = 0;  // ScoreAnswer::untrained_items
  double busy_seconds = 0;           // of the thread that computes
  HistoryCacheCounts cache;
};

class RequestQueue {
 public:
  // A model that answers; shared, so that an answer is made by the model that the request was read for.
  using Model = std::shared_ptr<RequestScorer>;
  // `failure`: null, or why there is no answer.
  using Done = std::function<void(ScoreAnswer answer, std::exception_ptr failure)>;

  RequestQueue(Model model, const RequestQueueOptions& options);
  // Answers what is waiting, then ends.
  ~RequestQueue();
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  // The model for new requests.
  Model model() const;
  void replace(Model model);

  // UsageError if the request is wrong, which is counted.
  void check(const RequestScorer& model, const ScoreRequest& request);
  // Of a request that check() accepts. Calls done, which must not throw, from the thread that computes.
  // Throws QueueIsFull. `model`: one that model() returned; it computes the answer.
  void submit(const Model& model, ScoreRequest request, Done done);
  // Waits for the answers of such requests, in their order; they enter the queue together. Throws the first
  // failure.
  std::vector<ScoreAnswer> answer(std::vector<ScoreRequest> requests);

  QueueCounts counts() const;

 private:
  struct Waiting {
    Model model;
    ScoreRequest request;
    Done done;
    Clock::time_point since = Clock::now();
    std::int64_t untrained_items = model->untrained_items(request);
  };
  struct Given {  // a batch that the device has been given
    std::vector<Waiting> batch;
    RequestScorer::Begun begun;
    bool is_refused = false;
  };
  void push(Waiting& waiting);
  void work(int threads);
  bool take(std::vector<Waiting>& batch);
  bool is_full_before(const Given& given) const;
  void begin(Given& given);
  void finish(Given& given);
  void refuse(Given& given);

  RequestQueueOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Model model_;
  std::deque<Waiting> waiting_;
  std::atomic<std::int64_t> waiting_count_ = 0;
  bool ends_ = false;
  QueueCounts counts_;
  Clock::time_point busy_since_;  // of the thread
  std::thread thread_;            // last: it uses the others
};

}  // namespace hstu
