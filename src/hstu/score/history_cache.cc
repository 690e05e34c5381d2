#include "hstu/score/history_cache.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/batching/features.h"

namespace hstu {
namespace {

std::int64_t common_prefix(const std::vector<HistoryEvent>& a, const std::vector<HistoryEvent>& b,
                           std::int64_t most) {
  const std::int64_t end = std::min({most, std::ssize(a), std::ssize(b)});
  return std::mismatch(a.begin(), a.begin() + end, b.begin()).first - a.begin();
}

std::uint64_t key_of(const HistoryCache::History& history) {
  std::vector<std::int64_t> values{history.user};
  values.insert(values.end(), history.contexts.begin(), history.contexts.end());
  const HistoryEvent& first = history.events.front();
  values.insert(values.end(), {first.item, first.time, first.action_id, first.action});
  return hash_keys(values);
}

}  // namespace

HistoryCache::HistoryCache(const KeptTokens& kept, DType type, std::int64_t bytes)
    : kept_(kept),
      page_bytes_(kPageTokens * (2 * kept.layers * kept.width * static_cast<std::int64_t>(size_of(type)) +
                                 static_cast<std::int64_t>(sizeof(std::int64_t)))) {
  require(kept.layers > 0, "a cache of histories for a model that keeps none");
  const std::int64_t pages = std::min<std::int64_t>(bytes / page_bytes_, std::int64_t{1} << 31);
  if (pages < 1)
    fail_usage("the cache of histories: {} bytes are too few: it needs {} for {} tokens of this model", bytes,
               page_bytes_, kPageTokens);
  const std::int64_t slots = pages * kPageTokens;
  for (std::int64_t i = 0; i < kept.layers; ++i)
    keys_.layers.push_back(
        {Tensor::empty({slots, kept.width}, type), Tensor::empty({slots, kept.width}, type)});
  time_ = Tensor::empty({slots}, DType::i64);
  for (std::int64_t page = pages; page-- > 0;) free_pages_.push_back(static_cast<std::int32_t>(page));
  counts_.limit = pages * page_bytes_;
}

std::vector<std::int64_t> HistoryCache::begin(std::vector<History> histories) {
  drop_batch();
  ++batch_;
  std::vector<std::int64_t> known;
  for (History& history : histories) {
    Use& use = uses_.emplace_back();
    use.history = std::move(history);
    find(use);
    known.push_back(use.known);
    counts_.known_events += use.known;
    counts_.computed_events += std::ssize(use.history.events) - use.known;
  }
  return known;
}

// The entry of the same user, contexts and first event; a new one if there is none. Null: another history
// has the same hash.
HistoryCache::Entry* HistoryCache::entry_of(const Use& use) {
  const auto [found, is_new] = entries_.try_emplace(use.key);
  Entry& entry = found->second;
  if (is_new) {
    entry.history.user = use.history.user;
    entry.history.contexts = use.history.contexts;
    entry.age = ages_.insert(ages_.end(), use.key);
    ++counts_.histories;
  } else if (entry.history.user != use.history.user || entry.history.contexts != use.history.contexts) {
    return nullptr;
  }
  ages_.splice(ages_.end(), ages_, entry.age);
  return &entry;
}

void HistoryCache::find(Use& use) {
  const std::int64_t most = std::max<std::int64_t>(0, std::ssize(use.history.events) - kept_.last_events);
  if (most == 0) return;
  use.key = key_of(use.history);
  use.entry = entry_of(use);
  if (use.entry == nullptr) return;
  Entry& entry = *use.entry;
  use.known = common_prefix(entry.history.events, use.history.events, most);
  if (entry.batch == batch_) {
    // Another sample of the batch writes behind what it reuses: this one reads no more than that.
    use.known = use.kept = std::min(use.known, entry.reused);
    return;
  }
  entry.batch = batch_;
  entry.reused = use.known;
  use.kept = most;
  reserve(use);
}

// Takes pages for the events to keep; fewer events are kept where there are not enough.
void HistoryCache::reserve(Use& use) {
  Entry& entry = *use.entry;
  while (std::ssize(entry.pages) * kPageTokens < tokens_of(use.kept))
    if (!take_page(entry)) break;
  const std::int64_t room = std::ssize(entry.pages) * kPageTokens;
  if (room < tokens_of(use.kept)) use.kept = std::max(use.known, (room - kept_.contexts) / kept_.of_event);
}

// Pages of histories that this batch uses are not taken.
bool HistoryCache::take_page(Entry& entry) {
  while (free_pages_.empty()) {
    const auto oldest = std::find_if(ages_.begin(), ages_.end(),
                                     [&](std::uint64_t key) { return entries_.at(key).batch != batch_; });
    if (oldest == ages_.end()) return false;
    ++counts_.evicted;
    forget(*oldest);
  }
  entry.pages.push_back(free_pages_.back());
  free_pages_.pop_back();
  counts_.bytes += page_bytes_;
  return true;
}

void HistoryCache::forget(std::uint64_t key) {
  const auto found = entries_.find(key);
  free_pages_.insert(free_pages_.end(), found->second.pages.begin(), found->second.pages.end());
  counts_.bytes -= std::ssize(found->second.pages) * page_bytes_;
  --counts_.histories;
  ages_.erase(found->second.age);
  entries_.erase(found);
}

std::int64_t HistoryCache::slot_of(const Entry& entry, std::int64_t token) const {
  return entry.pages[static_cast<std::size_t>(token / kPageTokens)] * kPageTokens + token % kPageTokens;
}

const HistoryKeys& HistoryCache::keys(std::span<const std::int64_t> token_offsets) {
  std::vector<std::int32_t> pages, past_of, tokens;
  std::vector<std::int64_t> page_offsets{0}, lengths, slots;
  auto* const time = time_.mutable_data<std::int64_t>();
  for (std::size_t b = 0; b < uses_.size(); ++b) {
    const Use& use = uses_[b];
    const std::int64_t known = tokens_of(use.known);
    past_of.push_back(known > 0 ? static_cast<std::int32_t>(lengths.size()) : -1);
    if (known > 0) {
      const auto& of_entry = use.entry->pages;
      pages.insert(pages.end(), of_entry.begin(), of_entry.begin() + (known + kPageTokens - 1) / kPageTokens);
      page_offsets.push_back(std::ssize(pages));
      lengths.push_back(known);
    }
    for (std::int64_t t = known; t < tokens_of(use.kept); ++t) {
      tokens.push_back(static_cast<std::int32_t>(token_offsets[b] + t - known));
      slots.push_back(slot_of(*use.entry, t));
      const std::int64_t event = (t - kept_.contexts) / kept_.of_event;
      time[slots.back()] = t < kept_.contexts ? 0 : use.history.events[static_cast<std::size_t>(event)].time;
    }
  }
  keys_.past = {}, keys_.tokens = {}, keys_.slots = {};
  const auto list = [](const auto& values) { return Tensor::from({std::ssize(values)}, values); };
  if (!lengths.empty())
    keys_.past = {.k = {},
                  .v = {},
                  .page_tokens = kPageTokens,
                  .pages = list(pages),
                  .page_offsets = list(page_offsets),
                  .lengths = list(lengths),
                  .past_of = list(past_of),
                  .time = time_};
  if (!tokens.empty()) keys_.tokens = list(tokens), keys_.slots = list(slots);
  return keys_;
}

void HistoryCache::commit() {
  for (Use& use : uses_) {
    if (use.kept == use.known) continue;
    use.history.events.resize(static_cast<std::size_t>(use.kept));
    use.entry->history.events = std::move(use.history.events);
  }
  uses_.clear();
}

// Of a batch without commit(): its pass may have written some of the keys.
void HistoryCache::drop_batch() {
  for (const Use& use : uses_)
    if (use.kept != use.known) forget(use.key);
  uses_.clear();
}

}  // namespace hstu
