// Keeps keys and values of users' histories between batches of requests, in pages of host memory. The least
// recently used histories leave when a limit of bytes is reached. Candidates never enter it.
//
// A history is found by a hash of its user, its contexts and its first event. What is kept of it is compared
// event by event with the history of the request: the events before the first difference are known, those
// behind it are computed and replace what was there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "hstu/batching/sample_builder.h"
#include "hstu/model/model.h"
#include "hstu/ops/history_keys.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

struct HistoryCacheCounts {
  std::int64_t known_events = 0;      // of requests, whose keys were there
  std::int64_t computed_events = 0;   // of requests, whose keys were not
  std::int64_t evicted = 0;           // histories
  std::int64_t histories = 0;         // there now
  std::int64_t bytes = 0, limit = 0;  // of their pages; of all pages
};

class HistoryCache {
 public:
  // `kept`: of a model that keeps tokens; `type` that of its keys. UsageError if `bytes` do not suffice for
  // one page.
  HistoryCache(const KeptTokens& kept, DType type, std::int64_t bytes);

  // The history of a sample.
  struct History {
    std::int64_t user = 0;
    std::vector<std::int64_t> contexts;
    std::vector<HistoryEvent> events;  // oldest first
  };
  // A batch is begin(), keys(), the pass and commit(). Without commit() the next batch forgets what this one
  // would have kept.
  //
  // Takes the histories of a batch; (B) how many of the first events of each are known.
  std::vector<std::int64_t> begin(std::vector<History> histories);
  // For the pass of the batch's samples without known events. token_offsets (B + 1). Valid until commit().
  const HistoryKeys& keys(std::span<const std::int64_t> token_offsets);
  void commit();

  const HistoryCacheCounts& counts() const { return counts_; }

 private:
  static constexpr std::int64_t kPageTokens = 32;

  struct Entry {
    History history;  // its events are those whose keys are there
    std::vector<std::int32_t> pages;
    std::int64_t batch = 0;   // the last one that used it
    std::int64_t reused = 0;  // events that this batch reads at least
    std::list<std::uint64_t>::iterator age;
  };
  // A sample of the batch.
  struct Use {
    History history;
    std::uint64_t key = 0;
    Entry* entry = nullptr;  // null: nothing is known or kept
    std::int64_t known = 0;  // events
    std::int64_t kept = 0;   // events whose keys are there after the pass; `known`: it keeps none
  };

  void find(Use& use);
  Entry* entry_of(const Use& use);
  void reserve(Use& use);
  bool take_page(Entry& entry);
  void forget(std::uint64_t key);
  void drop_batch();
  // Tokens of the first `events` events, with their contexts.
  std::int64_t tokens_of(std::int64_t events) const {
    return events == 0 ? 0 : kept_.contexts + events * kept_.of_event;
  }
  std::int64_t slot_of(const Entry& entry, std::int64_t token) const;

  KeptTokens kept_;
  std::int64_t page_bytes_;
  HistoryKeys keys_;
  Tensor time_;  // (slots) i64
  std::vector<std::int32_t> free_pages_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::list<std::uint64_t> ages_;  // keys, the least recently used first
  std::vector<Use> uses_;          // of the batch
  std::int64_t batch_ = 0;
  HistoryCacheCounts counts_;
};

}  // namespace hstu
