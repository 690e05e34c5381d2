// Keeps keys and values of users' histories between batches of requests, in pages on the device that
// computes. The least recently used histories leave when a limit of bytes is reached: for pages of host
// memory behind those of a GPU, from where their next request fetches them, as long as a second limit allows.
// Candidates never enter it.
//
// A history is found by a hash of its user, its contexts and its first event. What is kept of it is compared
// with the history of the request, column by column: the events before the first difference are known, those
// behind it are computed and replace what was there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/batching/token_events.h"
#include "hstu/model/model.h"
#include "hstu/ops/history_keys.h"
#include "hstu/tensor/context.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

struct HistoryCacheCounts {
  std::int64_t known_events = 0;                    // of requests, whose keys were there
  std::int64_t computed_events = 0;                 // of requests, whose keys were not
  std::int64_t evicted = 0;                         // histories whose keys were forgotten for others
  std::int64_t fetched_events = 0;                  // whose keys came back from the pages behind
  std::int64_t histories = 0;                       // there now
  std::int64_t bytes = 0, limit = 0;                // of their pages; of all pages
  std::int64_t behind_bytes = 0, behind_limit = 0;  // the same of the pages behind
};

// The column of a batch whose length is that of the histories, not of what is computed. It is the last one.
inline constexpr std::string_view kPastPagesColumn = "past.pages";

class HistoryCache {
 public:
  struct Limits {
    std::int64_t bytes = 0;   // of pages on the device
    std::int64_t behind = 0;  // of pages behind those of a GPU, in host memory
  };
  // `kept`: of a model that keeps tokens; `type` that of its keys. The pages are on the device of `compute`,
  // whose stream has the passes. UsageError if the bytes do not suffice for one page.
  HistoryCache(const KeptTokens& kept, DType type, const Limits& limits, const Context& compute);
  ~HistoryCache();
  HistoryCache(const HistoryCache&) = delete;
  HistoryCache& operator=(const HistoryCache&) = delete;

  // The history of a sample.
  struct History {
    std::int64_t user = 0;
    std::vector<std::int64_t> contexts;
    TokenEvents events;  // what they refer to must stay until commit()
  };
  // A batch is begin(), add_columns(), keys(), the pass and commit(). Without commit() the next batch forgets
  // what this one would have kept.
  //
  // Takes the histories of a batch; (B) how many of the first events of each are known.
  std::vector<std::int64_t> begin(std::vector<History> histories);
  // Adds to the batch, of the samples without known events, where their earlier keys are and its own go.
  void add_columns(Batch& batch);
  // For the pass of the batch, which is on the device. Valid until commit().
  const HistoryKeys& keys(const Batch& batch);
  void commit();

  const HistoryCacheCounts& counts() const { return counts_; }

 private:
  static constexpr std::int64_t kPageTokens = 32;

  // Pages of one memory. A page has the keys of its tokens in layer 0, their values, the keys in layer 1, and
  // so on, so that one copy moves it.
  struct Pages {
    std::byte* data = nullptr;
    std::int64_t* time = nullptr;  // of the tokens, where attention reads times
    std::int64_t time_stride = 0;  // from page to page
    std::vector<std::int32_t> free;
    std::list<std::uint64_t> ages;  // keys of the histories that are in them, the least recently used first
  };
  struct Entry {
    std::int64_t user = 0;
    std::vector<std::int64_t> contexts;
    KeptEvents events;  // whose keys are there
    bool is_behind = false;
    std::vector<std::int32_t> pages;
    std::int64_t batch = 0;   // the last one that used it
    std::int64_t reused = 0;  // events that this batch reads at least
    std::list<std::uint64_t>::iterator age;
  };
  // A sample of the batch.
  struct Use {
    History history;
    std::uint64_t key = 0;
    std::int64_t equal = 0;  // first events that are those of the entry, before anything left the cache
    Entry* entry = nullptr;  // null: nothing is known or kept
    std::int64_t known = 0;  // events
    std::int64_t kept = 0;   // events whose keys are there after the pass; `known`: it keeps none
  };

  // All but the events that every pass computes.
  std::int64_t most_kept(const History& history) const {
    return std::max<std::int64_t>(0, history.events.size() - kept_.last_events);
  }
  void compare(Use& use) const;
  void find(Use& use);
  std::int64_t known_of(const Entry& entry, const Use& use) const;
  Entry* entry_of(const Use& use);
  void reserve(Use& use);
  bool take_page(Entry& entry);
  bool make_room(Pages& pages);
  void fetch(std::uint64_t key, Entry& entry);
  bool put_behind(std::uint64_t key, Entry& entry);
  void copy_page(Pages& to, std::int32_t page, const Pages& from, std::int32_t other) const;
  void move_age(std::uint64_t key, Entry& entry, Pages& to);
  void forget(std::uint64_t key);
  void drop_batch();
  Pages& pages_of(const Entry& entry) { return entry.is_behind ? behind_ : near_; }
  // Tokens of the first `events` events, with their contexts.
  std::int64_t tokens_of(std::int64_t events) const {
    return events == 0 ? 0 : kept_.contexts + events * kept_.of_event;
  }
  // A row of keys_.
  std::int64_t slot_of(const Entry& entry, std::int64_t token) const;
  std::int64_t known_events_of(std::int64_t pages) const;

  KeptTokens kept_;
  Context compute_;
  std::int64_t page_rows_;   // of keys and values of all layers
  std::int64_t key_bytes_;   // of these
  std::int64_t page_bytes_;  // with the times
  Tensor memory_;            // of near_
  std::shared_ptr<std::byte> memory_behind_;
  HistoryKeys keys_;
  Pages near_, behind_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::vector<Use> uses_;  // of the batch
  std::int64_t batch_ = 0;
  HistoryCacheCounts counts_;
};

}  // namespace hstu
