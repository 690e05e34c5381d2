// Answers requests from memory with a trained model: the answers of `hstu predict`, to the last bit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/score/request.h"
#include "hstu/score/request_events.h"
#include "hstu/score/request_form.h"
#include "hstu/score/retriever.h"
#include "hstu/score/scorer.h"
#include "hstu/score/scoring_batches.h"

namespace hstu {

struct RequestScorerOptions {
  Path model = {};                // a run or an export
  std::string checkpoint = {};    // of a run: a step or "best"; "": the newest
  Path data = {};                 // a dataset with histories; "": the run's own; an export has none
  std::string device = {};        // "": the run's own
  std::int64_t cache_bytes = 0;   // of keys of histories (history_cache.h); 0: none are kept
  std::int64_t cache_behind = 0;  // on a GPU: of those in host memory behind it
  std::int64_t batch_size = 0;    // samples of a forward pass; 0: as evaluations of the run
};

class RequestScorer {
 public:
  // Throws UsageError or Error, as `hstu predict` does, for what cannot be opened or scored.
  explicit RequestScorer(const RequestScorerOptions& options);

  bool ranks() const { return scorer_ != nullptr; }                                  // false: kind retrieval
  bool has_vectors() const { return retriever_ && retriever_->compares_vectors(); }  // of users
  bool has_users() const { return data_ != nullptr; }  // requests may leave their events out
  std::vector<std::string> tasks() const;              // of a model that ranks
  std::int64_t width() const;                          // E of vectors; 0: a model that ranks
  const RequestForm& form() const { return *form_; }
  // The step and a hash of what scores depend on: what was trained, the dataset, an export's configuration.
  const std::string& version() const { return version_; }
  // Null: none are kept.
  const HistoryCache* cache() const;
  ForwardPass& pass() { return scorer_ ? scorer_->pass() : retriever_->pass(); }

  // How many items a request has to be scored; of kind retrieval, which compares vectors with all: 0.
  std::int64_t scored_items(const ScoreRequest& request) const {
    if (!scorer_) return 0;
    return std::ssize(items_of(request));
  }
  // So many are scored before other requests have their turn.
  static constexpr std::int64_t kItemsOnHost = 2'048, kItemsOnGpu = 262'144;
  std::int64_t most_items() const { return is_on_host_ ? kItemsOnHost : kItemsOnGpu; }
  // Of a request with others behind them: those from `first` on, at most `count`.
  ScoreRequest part_of(const ScoreRequest& request, std::int64_t first, std::int64_t count) const;
  // To the answers of all parts, one after the other, the answer of the request.
  void join_parts(const ScoreRequest& request, ScoreAnswer& answers) const;

  // Error if a file that it reads is no longer what it was when it was opened: what was answered since is
  // wrong.
  void check_files() const;
  // UsageError with what is wrong with a request.
  void check(const ScoreRequest& request) const;
  // Candidates, and events of the request, whose items the model has no row for: read as rows begin.
  std::int64_t untrained_items(const ScoreRequest& request) const;
  // That `top` finds at most without candidates.
  std::int64_t catalogue_size() const;

 private:
  // A request and its user's events.
  struct Open {
    const ScoreRequest* request;
    ScoreAnswer* answer;
    const EventColumns* events;  // until the device has been given everything
    std::int64_t time = 0;
    UserEvents before() const { return PositionRange{0, std::ssize(events->item)}; }
    // Of top: the items that are scored or, of a model that finds items, those that are left out.
    std::vector<std::int64_t> left = {};
  };

 public:
  // Requests whose answers the device computes.
  class Begun {
   public:
    // Whether finish() need not wait.
    bool is_computed() const { return batches_ == nullptr || batches_->is_computed(); }

   private:
    friend class RequestScorer;
    std::vector<ScoreAnswer> answers_;
    std::vector<Open> open_;
    std::unique_ptr<ScoringBatches> batches_;  // null: everything is computed
  };
  // Of requests that check() accepts, which must stay until finish(). From one thread at a time; finish() in
  // the order of begin(). A model that ranks on a GPU returns before it has computed the scores.
  Begun begin(std::span<const ScoreRequest* const> requests);
  std::vector<ScoreAnswer> finish(Begun begun);
  std::vector<ScoreAnswer> answer(std::span<const ScoreRequest* const> requests) {
    return finish(begin(requests));
  }

 private:
  // Of a model that ranks.
  std::span<const std::int64_t> items_of(const ScoreRequest& request) const {
    const bool all = request.asked == Asked::top && request.items.empty();
    return all ? scorer_->trained_items() : request.items;
  }
  std::vector<Open> gather(std::span<const ScoreRequest* const> requests, std::vector<ScoreAnswer>& answers);
  std::unique_ptr<ScoringBatches> begin_ranking(std::vector<Open>& open);
  void choose_top(const std::vector<Open>& open) const;
  void retrieve(std::vector<Open>& open);
  void find(std::span<const Open* const> asked, std::span<const float> vectors);

  RunOptions run_;
  std::unique_ptr<Dataset> schema_;
  std::unique_ptr<RequestForm> form_;
  const Dataset* data_ = nullptr;        // schema_, if it has the users' events
  std::vector<CountedEvents> counted_;   // of the requests that are answered
  std::unique_ptr<EventMemory> memory_;  // of a pass
  std::int64_t scan_limit_ = 0, batch_size_ = 0;
  std::vector<std::int64_t> no_context_;
  std::string version_;
  bool is_on_host_ = true;
  std::unique_ptr<Scorer> scorer_;        // one of
  std::unique_ptr<Retriever> retriever_;  // the two
};

}  // namespace hstu
