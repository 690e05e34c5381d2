// Requests of many threads in batches for one model: a thread of its own computes, one batch after the other.
// While a GPU computes a batch, the thread makes the next one if it is full: waiting would not make it
// larger. Between batches the model may be replaced. Large requests wait in a line of their own, whose
// batches are computed in turn with those of the others; requests with very many items are computed in parts,
// in turn with each other: nobody waits for all that one client asks for.
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
  // Of a request that check() accepts. Calls done from the thread that computes. Throws QueueIsFull. `model`:
  // one that model() returned; it computes the answer.
  void submit(const Model& model, ScoreRequest request, bool is_large, Done done);
  // Waits for the answers of such requests, in their order; they enter the queue together. Throws the first
  // failure.
  std::vector<ScoreAnswer> answer(std::vector<ScoreRequest> requests);

  QueueCounts counts() const;

 private:
  // Of a request; of the thread that computes.
  struct Parts {
    ScoreAnswer answers;
    bool has_failed = false;
  };
  struct Waiting {
    Model model;
    ScoreRequest request;
    Done done;
    bool is_large = false;
    Clock::time_point since = Clock::now();
    std::int64_t untrained_items = model->untrained_items(request);
    std::int64_t begun_items = 0;  // in parts
    std::shared_ptr<Parts> parts = {};
  };
  struct Given {  // a batch that the device has been given
    std::vector<Waiting> batch;
    std::int64_t requests = 0;  // whose last items these are
    RequestScorer::Begun begun;
    bool is_refused = false;
  };
  void push(Waiting& waiting);
  void work(int threads);
  bool take(Given& given);
  static Waiting part_of(Waiting& from, std::int64_t count, bool is_last);
  bool is_full_before(const Given& given) const;
  void begin(Given& given);
  void finish(Given& given);
  void refuse(Given& given);
  static void give(const Waiting& waiting, ScoreAnswer answer, const std::exception_ptr& failure) noexcept;

  RequestQueueOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Model model_;
  std::deque<Waiting> waiting_, large_;
  bool large_is_next_ = false;
  std::atomic<std::int64_t> waiting_count_ = 0;  // of both
  bool ends_ = false;
  QueueCounts counts_;
  Clock::time_point busy_since_;  // of the thread
  std::thread thread_;            // last: it uses the others
};

}  // namespace hstu
