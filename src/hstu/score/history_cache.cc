#include "hstu/score/history_cache.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/batching/features.h"
#include "hstu/dataset/manifest.h"
#include "hstu/device/pinned_memory.h"

namespace hstu {
namespace {

std::uint64_t key_of(const HistoryCache::History& history) {
  std::vector<std::int64_t> values{history.user};
  values.insert(values.end(), history.contexts.begin(), history.contexts.end());
  const TokenEvents& events = history.events;
  values.insert(values.end(), {events.item.front(), events.time.front(),
                               events.action_id.empty() ? 0 : events.action_id.front(),
                               events.action.front() & ~kRankableBit});
  return hash_keys(values);
}

// Descending: the last one is the first that is taken.
std::vector<std::int32_t> numbered(std::int64_t pages) {
  std::vector<std::int32_t> numbers;
  for (std::int64_t page = pages; page-- > 0;) numbers.push_back(static_cast<std::int32_t>(page));
  return numbers;
}

constexpr std::string_view kPageOffsets = "past.page_offsets", kLengths = "past.lengths", kPastOf = "past.of",
                           kTokens = "kept.tokens", kSlots = "kept.slots";

template <typename T>
void add_list(Batch& batch, std::string_view name, const std::vector<T>& values) {
  if (!values.empty()) std::ranges::copy(values, batch.add<T>(name, {std::ssize(values)}).begin());
}

}  // namespace

HistoryCache::HistoryCache(const KeptTokens& kept, DType type, const Limits& limits, const Context& compute)
    : kept_(kept),
      compute_(compute),
      page_rows_(kPageTokens * 2 * kept.layers),
      key_bytes_(page_rows_ * kept.width * static_cast<std::int64_t>(size_of(type))),
      page_bytes_(key_bytes_ +
                  (kept.bias ? page_rows_ * static_cast<std::int64_t>(sizeof(std::int64_t)) : 0)) {
  require(kept.layers > 0, "a cache of histories for a model that keeps none");
  const std::int64_t most = (std::int64_t{1} << 31) / (2 * kept.layers) - 1,  // pages are numbered by 32 bits
      pages = std::min(limits.bytes / page_bytes_, most);
  if (pages < 1)
    fail_usage("the cache of histories: {} bytes are too few: it needs {} for {} tokens of this model",
               limits.bytes, page_bytes_, kPageTokens);
  const std::int64_t rows = pages * page_rows_;
  memory_ = Tensor::empty({rows, kept.width}, type, compute);
  for (std::int64_t i = 0; i < kept.layers; ++i) {
    const std::int64_t first = 2 * i * kPageTokens;
    keys_.layers.push_back({memory_.row_range(first, rows), memory_.row_range(first + kPageTokens, rows)});
  }
  near_ = {.data = memory_.mutable_raw(), .free = numbered(pages), .ages = {}};
  if (kept.bias) {
    keys_.time = Tensor::empty({rows}, DType::i64, compute);
    near_.time = keys_.time.mutable_data<std::int64_t>(), near_.time_stride = page_rows_;
  }
  counts_.limit = pages * page_bytes_;
  if (compute.device().is_host() || limits.behind < page_bytes_) return;
  const std::int64_t behind = std::min(limits.behind / page_bytes_, most);
  counts_.behind_limit = behind * page_bytes_;
  std::pmr::memory_resource* const from = transfer_memory(compute.device());
  const auto bytes = static_cast<std::size_t>(counts_.behind_limit);
  memory_behind_ = {static_cast<std::byte*>(from->allocate(bytes)),
                    [from, bytes](std::byte* data) { from->deallocate(data, bytes); }};
  behind_ = {.data = memory_behind_.get(), .free = numbered(behind), .ages = {}};
  if (kept.bias) {
    behind_.time = reinterpret_cast<std::int64_t*>(behind_.data + behind * key_bytes_);
    behind_.time_stride = kPageTokens;
  }
}

HistoryCache::~HistoryCache() {
  if (memory_behind_ != nullptr) compute_.stream.synchronize();  // copies
}

std::vector<std::int64_t> HistoryCache::begin(std::vector<History> histories) {
  drop_batch();
  ++batch_;
  for (History& history : histories) uses_.emplace_back().history = std::move(history);
  parallel_blocks(std::ssize(uses_), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) compare(uses_[static_cast<std::size_t>(i)]);
  });
  std::vector<std::int64_t> known;
  known.reserve(uses_.size());
  for (Use& use : uses_) {
    find(use);
    known.push_back(use.known);
    counts_.known_events += use.known;
    counts_.computed_events += use.history.events.size() - use.known;
  }
  return known;
}

// The entry of the same user, contexts and first event; a new one if there is none. Null: another history
// has the same hash.
HistoryCache::Entry* HistoryCache::entry_of(const Use& use) {
  const auto [found, is_new] = entries_.try_emplace(use.key);
  Entry& entry = found->second;
  if (is_new) {
    entry.user = use.history.user;
    entry.contexts = use.history.contexts;
    entry.age = near_.ages.insert(near_.ages.end(), use.key);
    ++counts_.histories;
  } else if (entry.user != use.history.user || entry.contexts != use.history.contexts) {
    return nullptr;
  }
  move_age(use.key, entry, pages_of(entry));
  return &entry;
}

// Reads the cache, which nothing changes meanwhile: the samples of a batch may be compared at the same time.
void HistoryCache::compare(Use& use) const {
  const std::int64_t most = most_kept(use.history);
  if (most == 0) return;
  use.key = key_of(use.history);
  const auto found = entries_.find(use.key);
  if (found != entries_.end()) use.equal = found->second.events.equal_events(use.history.events, most);
}

void HistoryCache::find(Use& use) {
  const std::int64_t most = most_kept(use.history);
  if (most == 0) return;
  use.entry = entry_of(use);
  if (use.entry == nullptr) return;
  Entry& entry = *use.entry;
  use.known = known_of(entry, use);
  if (entry.batch == batch_) {
    // Another sample of the batch writes behind what it reuses: this one reads no more than that.
    use.known = use.kept = std::min(use.known, entry.reused);
    return;
  }
  entry.batch = batch_;
  if (entry.is_behind) {
    fetch(use.key, entry);
    use.known = std::min(use.known, entry.events.size());
    counts_.fetched_events += use.known;
  }
  entry.reused = use.known;
  use.kept = most;
  reserve(use);
}

// How many of the first events of the use have their keys in the entry. With a bias the query of an event has
// the time of the next one.
std::int64_t HistoryCache::known_of(const Entry& entry, const Use& use) const {
  // Within a batch an entry only loses events, or is replaced by one without any.
  const std::int64_t known = std::min(use.equal, entry.events.size());
  const TokenEvents& events = use.history.events;
  if (!kept_.bias || known == 0 || known == events.size()) return known;
  return events.time[static_cast<std::size_t>(known)] == entry.events.time_behind(known) ? known : known - 1;
}

// Takes pages for the events to keep; fewer events are kept where there are not enough.
void HistoryCache::reserve(Use& use) {
  Entry& entry = *use.entry;
  while (std::ssize(entry.pages) * kPageTokens < tokens_of(use.kept))
    if (!take_page(entry)) break;
  const std::int64_t room = std::ssize(entry.pages) * kPageTokens;
  if (room < tokens_of(use.kept)) use.kept = std::max(use.known, known_events_of(std::ssize(entry.pages)));
}

bool HistoryCache::take_page(Entry& entry) {
  if (near_.free.empty() && !make_room(near_)) return false;
  entry.pages.push_back(near_.free.back());
  near_.free.pop_back();
  counts_.bytes += page_bytes_;
  return true;
}

// Frees pages of the least recently used history of those that this batch does not use.
bool HistoryCache::make_room(Pages& pages) {
  while (true) {
    const auto oldest =
        std::ranges::find_if(pages.ages, [&](std::uint64_t key) { return entries_.at(key).batch != batch_; });
    if (oldest == pages.ages.end()) return false;
    Entry& entry = entries_.at(*oldest);
    const bool has_pages = !entry.pages.empty();
    if (has_pages && &pages == &near_ && put_behind(*oldest, entry)) return true;
    counts_.evicted += has_pages ? 1 : 0;
    forget(*oldest);
    if (has_pages) return true;
  }
}

// Copies are on the stream of the passes: pages that are free on the host may be written by what follows.
void HistoryCache::copy_page(Pages& to, std::int32_t page, const Pages& from, std::int32_t other) const {
  copy_bytes(to.data + page * key_bytes_, from.data + other * key_bytes_,
             static_cast<std::size_t>(key_bytes_), compute_.stream);
  if (to.time != nullptr)
    copy_bytes(to.time + page * to.time_stride, from.time + other * from.time_stride,
               kPageTokens * sizeof(std::int64_t), compute_.stream);
}

void HistoryCache::move_age(std::uint64_t key, Entry& entry, Pages& to) {
  pages_of(entry).ages.erase(entry.age);
  entry.age = to.ages.insert(to.ages.end(), key);
}

// False: there is no room.
bool HistoryCache::put_behind(std::uint64_t key, Entry& entry) {
  const std::int64_t needed = std::ssize(entry.pages);
  if (needed * page_bytes_ > counts_.behind_limit) return false;
  while (std::ssize(behind_.free) < needed)
    if (!make_room(behind_)) return false;
  for (std::int32_t& page : entry.pages) {
    const std::int32_t to = behind_.free.back();
    behind_.free.pop_back();
    copy_page(behind_, to, near_, page);
    near_.free.push_back(std::exchange(page, to));
  }
  move_age(key, entry, behind_);
  entry.is_behind = true;
  counts_.bytes -= needed * page_bytes_, counts_.behind_bytes += needed * page_bytes_;
  return true;
}

// Brings the keys back, as far as there are pages.
void HistoryCache::fetch(std::uint64_t key, Entry& entry) {
  const std::vector<std::int32_t> from = std::exchange(entry.pages, {});
  move_age(key, entry, near_);
  entry.is_behind = false;
  for (const std::int32_t page : from) {
    if (!take_page(entry)) break;
    copy_page(near_, entry.pages.back(), behind_, page);
  }
  behind_.free.insert(behind_.free.end(), from.begin(), from.end());
  counts_.behind_bytes -= std::ssize(from) * page_bytes_;
  const std::int64_t events = known_events_of(std::ssize(entry.pages));
  entry.events.shorten(events);
}

void HistoryCache::forget(std::uint64_t key) {
  const auto found = entries_.find(key);
  Entry& entry = found->second;
  Pages& pages = pages_of(entry);
  pages.free.insert(pages.free.end(), entry.pages.begin(), entry.pages.end());
  (entry.is_behind ? counts_.behind_bytes : counts_.bytes) -= std::ssize(entry.pages) * page_bytes_;
  --counts_.histories;
  pages.ages.erase(entry.age);
  entries_.erase(found);
}

// Events whose tokens fit into so many pages.
std::int64_t HistoryCache::known_events_of(std::int64_t pages) const {
  return std::max<std::int64_t>(0, (pages * kPageTokens - kept_.contexts) / kept_.of_event);
}

std::int64_t HistoryCache::slot_of(const Entry& entry, std::int64_t token) const {
  return entry.pages[static_cast<std::size_t>(token / kPageTokens)] * page_rows_ + token % kPageTokens;
}

void HistoryCache::add_columns(Batch& batch) {
  std::vector<std::int32_t> pages, past_of, tokens;
  std::vector<std::int64_t> page_offsets{0}, lengths, slots;
  const auto token_offsets = batch.values<std::int64_t>(kTokenOffsetsColumn);
  for (std::size_t b = 0; b < uses_.size(); ++b) {
    const Use& use = uses_[b];
    const std::int64_t known = tokens_of(use.known);
    past_of.push_back(known > 0 ? static_cast<std::int32_t>(lengths.size()) : -1);
    if (known > 0) {
      // Counted in pages of one layer's keys.
      for (std::int64_t page = 0; page * kPageTokens < known; ++page)
        pages.push_back(static_cast<std::int32_t>(slot_of(*use.entry, page * kPageTokens) / kPageTokens));
      page_offsets.push_back(std::ssize(pages));
      lengths.push_back(known);
    }
    for (std::int64_t t = known; t < tokens_of(use.kept); ++t) {
      tokens.push_back(static_cast<std::int32_t>(token_offsets[b] + t - known));
      slots.push_back(slot_of(*use.entry, t));
    }
  }
  add_list(batch, kTokens, tokens);
  add_list(batch, kSlots, slots);
  if (!lengths.empty()) {
    add_list(batch, kPageOffsets, page_offsets);
    add_list(batch, kLengths, lengths);
    add_list(batch, kPastOf, past_of);
    add_list(batch, kPastPagesColumn, pages);
  }
}

const HistoryKeys& HistoryCache::keys(const Batch& batch) {
  keys_.past = {}, keys_.tokens = {}, keys_.slots = {};
  if (batch.has(kPastPagesColumn))
    keys_.past = {.k = {},
                  .v = {},
                  .page_tokens = kPageTokens,
                  .pages = batch.tensor(kPastPagesColumn),
                  .page_offsets = batch.tensor(kPageOffsets),
                  .lengths = batch.tensor(kLengths),
                  .past_of = batch.tensor(kPastOf),
                  .time = keys_.time};
  if (batch.has(kTokens)) keys_.tokens = batch.tensor(kTokens), keys_.slots = batch.tensor(kSlots);
  return keys_;
}

void HistoryCache::commit() {
  for (const Use& use : uses_)
    if (use.kept != use.known) use.entry->events.replace(use.history.events, use.known, use.kept);
  uses_.clear();
}

// Of a batch without commit(): its pass may have written some of the keys.
void HistoryCache::drop_batch() {
  for (const Use& use : uses_)
    if (use.kept != use.known) forget(use.key);
  uses_.clear();
}

}  // namespace hstu
