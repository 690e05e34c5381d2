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
#include "hstu/score/seen_items.h"

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

  bool ranks() const { return scorer_ != nullptr; }    // false: kind retrieval
  bool has_users() const { return data_ != nullptr; }  // requests may leave their events out
  std::vector<std::string> tasks() const;              // of a model that ranks
  std::int64_t width() const;                          // E of vectors; 0: a model that ranks
  const RequestForm& form() const { return *form_; }
  // The step and a hash of everything that was trained: equal if and only if the weights are.
  const std::string& version() const { return version_; }
  // Null: none are kept.
  const HistoryCache* cache() const;
  ForwardPass& pass() { return scorer_ ? scorer_->pass() : retriever_->pass(); }

  // UsageError with what is wrong with a request.
  void check(const ScoreRequest& request) const;
  // Of requests that check() accepts. From one thread at a time.
  std::vector<ScoreAnswer> answer(std::span<const ScoreRequest* const> requests);

 private:
  // A request and its user's events in the dataset in memory.
  struct Open {
    const ScoreRequest* request;
    ScoreAnswer* answer;
    UserEvents events;
    std::int64_t time = 0;
    std::vector<std::int64_t> left = {};  // of top: the items that are scored
  };

  std::vector<Open> gather(std::span<const ScoreRequest* const> requests, std::vector<ScoreAnswer>& answers);
  void rank(std::vector<Open>& open);
  void retrieve(std::vector<Open>& open);
  void find(std::span<const Open* const> asked, std::span<const float> vectors);

  RunOptions run_;
  std::unique_ptr<Dataset> schema_;
  std::unique_ptr<RequestForm> form_;
  const Dataset* data_ = nullptr;  // schema_, if it has the users' events
  std::unique_ptr<RequestHistories> histories_;
  std::unique_ptr<UnseenItems> unseen_;
  std::int64_t scan_limit_ = 0, batch_size_ = 0;
  std::vector<std::int64_t> no_context_;
  std::string version_;
  std::unique_ptr<Scorer> scorer_;        // one of
  std::unique_ptr<Retriever> retriever_;  // the two
};

}  // namespace hstu
