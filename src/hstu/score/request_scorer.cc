#include "hstu/score/request_scorer.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "hstu/base/calendar.h"
#include "hstu/base/checksum.h"
#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/mapped_ranges.h"
#include "hstu/base/threads.h"
#include "hstu/comm/communicator.h"
#include "hstu/dataset/counted_times.h"
#include "hstu/options/make_task.h"
#include "hstu/run/other_data.h"
#include "hstu/score/model_folder.h"
#include "hstu/score/needed_columns.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {
namespace {

constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

// Attributes of items, texts behind codes and an export's configuration change scores too.
std::string version_of(const ModelFolder& model, const Dataset& schema) {
  std::string text = read_file(model.checkpoint.path() / kManifestName) + schema.manifest().id;
  if (!model.has_events) text += read_file(ExportFolder{model.checkpoint.path().parent_path()}.config());
  return fmt::format("{}-{}", model.checkpoint.step(), checksum(text).substr(0, 16));
}

// The first of the values for which is_bad(); null if there is none. Histories are long and almost always
// good: without an exit inside the first loop, many values are examined at once.
template <typename T, typename IsBad>
const T* first_bad(std::span<const T> values, const IsBad& is_bad) {
  T bad = 0;
  for (const T value : values) bad = static_cast<T>(bad | (is_bad(value) ? 1 : 0));
  return bad == 0 ? nullptr : &*std::ranges::find_if(values, is_bad);
}

// Differences of two times must have 64 bits. Since 1970, numbers of another unit are noticed.
void check_times(const char* what, std::span<const std::int64_t> times, bool since_1970) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60, kYear2101 = 4'133'980'800;
  const auto* const first = first_bad(times, [](std::int64_t t) { return t < -kMost || t >= kYear2101; });
  if (first == nullptr) return;
  for (const std::int64_t t : times.subspan(static_cast<std::size_t>(first - times.data()))) {
    if (const auto other = since_1970 ? other_unit(t, "s") : std::nullopt)
      fail_usage("{}: in s the time {} is in the year {}, in {} in {}: expected seconds", what, t,
                 calendar_year(t), other->unit, other->year);
    if (t < -kMost || t > kMost) fail_usage("{}: {} is no time in seconds", what, t);
  }
}

void check_ids(const char* what, std::span<const std::int64_t> ids) {
  if (const auto* const bad = first_bad(ids, [](std::int64_t id) { return id < 0; }))
    fail_usage("{}: expected an id of at least 0, found {}", what, *bad);
}

// What exclude_seen leaves out: ascending, each once.
std::vector<std::int64_t> seen_items(const EventColumns& events, std::uint8_t actions) {
  std::vector<std::int64_t> seen;
  for (std::size_t i = 0; i < events.item.size(); ++i)
    if (actions == 0 || (events.action[i] & actions) != 0) seen.push_back(events.item[i]);
  std::ranges::sort(seen);
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  return seen;
}

// Everything else of a dataset is small, or (names and attributes of items) read by every request.
bool is_not_of_events(const std::string& path) {
  const std::string name = Path(path).filename();
  return name != kItemFile && name != kTimestampFile && name != kActionFile && name != kWeightFile &&
         !name.starts_with("context_");  // context_file()
}

void add_items(std::span<const kernels::ScoredItem> list, ScoreAnswer& answer) {
  for (const kernels::ScoredItem& item : list) {
    answer.items.push_back(item.id);
    answer.scores.push_back(item.score);
  }
}

}  // namespace

RequestScorer::RequestScorer(const RequestScorerOptions& options) {
  const std::int64_t lost_before = lost_pages();
  if (options.cache_behind > 0 && options.cache_bytes == 0)
    fail_usage("the cache of histories: {} bytes of host memory are behind no cache: give it bytes too",
               options.cache_behind);
  ModelFolder model = open_model_folder(options.model, options.checkpoint);
  if (!options.device.empty()) model.options.device = options.device;
  run_ = model.options;
  schema_ = std::make_unique<Dataset>(options.data.empty() ? run_.data.path : options.data);
  version_ = version_of(model, *schema_);
  check_readable(model.checkpoint, run_.data.path, *schema_);
  if (model.has_events || !options.data.empty()) data_ = schema_.get();
  memory_ = std::make_unique<EventMemory>(*schema_);
  const Manifest& manifest = schema_->manifest();
  form_ = std::make_unique<RequestForm>(*schema_, context_of_requests(run_, manifest),
                                        context_of_events(run_, manifest));
  no_context_.assign(form_->columns(), 0);
  Task task = make_task(run_, facts_of(*schema_));
  scan_limit_ = task.evaluation.scan_limit;
  batch_size_ = options.batch_size > 0 ? options.batch_size : evaluation_batch_size(run_);
  const Dataset& memory = memory_->dataset();
  if (task.objective->retrieval() != nullptr || task.objective->lists() != nullptr) {
    retriever_ = std::make_unique<Retriever>(run_, model.checkpoint, memory, *schema_, std::move(task));
  } else {
    if (!task.no_requests.empty()) fail_usage("{}", task.no_requests);
    scorer_ = std::make_unique<Scorer>(run_, model.checkpoint, memory, std::move(task));
  }
  pass().read_requests(*memory_);
  is_on_host_ = pass().learner().compute.device().is_host();
  if (options.cache_bytes > 0) pass().keep_histories({options.cache_bytes, options.cache_behind});
  keep_in_memory(schema_->folder(), is_not_of_events);
  if (lost_pages() != lost_before)
    fail("{}: a file became shorter, or its disk cannot be read, while it was opened",
         options.model.string());
}

void RequestScorer::check_files() const {
  if (lost_pages() == 0) return;
  const std::string file = lost_file(schema_->folder());
  if (!file.empty())
    fail(
        "{}: became shorter, or its disk cannot be read, while the program used it: restore the file, and "
        "start "
        "the program again",
        file);
}

std::vector<std::string> RequestScorer::tasks() const {
  return scorer_ ? scorer_->tasks() : std::vector<std::string>();
}

std::int64_t RequestScorer::width() const {
  return retriever_ ? retriever_->width() : 0;
}

const HistoryCache* RequestScorer::cache() const {
  return (scorer_ ? scorer_->pass() : retriever_->pass()).cache();
}

void RequestScorer::check(const ScoreRequest& r) const {
  if (r.asked == Asked::scores && retriever_)
    fail_usage("a model that finds items scores no single candidates: ask for its top items");
  if (r.asked == Asked::vectors && retriever_ && !retriever_->compares_vectors())
    fail_usage(
        "a model of this kind finds lists of items, and has no vectors of them: ask for its top items");
  if (r.asked == Asked::vectors && scorer_)
    fail_usage("a model of this kind scores candidates and has no vectors: ask for scores or its top items");
  if (r.asked == Asked::scores && r.items.empty()) fail_usage("items: expected at least one candidate");
  if (r.asked == Asked::top && r.top < 1) fail_usage("k: expected at least 1, found {}", r.top);
  const std::uint8_t known = form_->known_bits();
  if ((r.seen_actions & ~known) != 0)
    fail_usage("exclude_seen: expected a sum of bits of {}, found {}", known, r.seen_actions);
  if (retriever_ && !r.items.empty())
    fail_usage("items: this model finds items of its whole catalogue: leave them out");
  if (scorer_ && !r.time) fail_usage("time: expected the time of the request");
  const bool since_1970 = counts_from_1970(form_->manifest());
  if (r.time) check_times("time", std::span(&*r.time, 1), since_1970);
  if (scorer_ && r.task >= scorer_->tasks().size())
    fail_usage("task: expected a number below {}, found {}", scorer_->tasks().size(), r.task);
  const std::size_t columns = form_->columns();
  const std::vector<bool>& needed = form_->of_requests();
  const bool needs = contains(needed, true);
  if (r.context.size() != columns && (needs || !r.context.empty()))
    fail_usage("context: expected {} values, found {}", columns, r.context.size());
  for (std::size_t c = 0; c < r.context.size(); ++c)
    if (needed[c]) form_->check_codes(c, std::span(r.context).subspan(c, 1));
  if (!r.events) {
    if (data_ == nullptr)
      fail_usage(
          "events: this model was opened without the users' events: a request needs those of its user");
    return;
  }
  const RequestEvents& events = *r.events;
  const std::size_t count = events.item.size();
  if (events.time.size() != count || events.action.size() != count)
    fail_usage("events: {} items, {} times and {} actions are not of the same events", count,
               events.time.size(), events.action.size());
  check_ids("events: item", events.item);
  check_times("events: time", events.time, since_1970);
  const auto is_unknown = [&](std::uint8_t action) { return (action & ~known) != 0; };
  if (const auto* const bad = first_bad(std::span(events.action), is_unknown))
    fail_usage("events: action: expected a sum of bits of {}, found {}", known, *bad);
  if (!events.context.empty() && events.context.size() != columns)
    fail_usage("events: expected {} context columns, found {}", columns, events.context.size());
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t values = events.context.empty() ? 0 : events.context[c].size();
    if (values != count && (form_->of_events()[c] || values != 0))
      fail_usage("events: context column \"{}\": expected {} values, found {}", form_->manifest().context[c],
                 count, values);
    if (form_->of_events()[c]) form_->check_codes(c, events.context[c]);
  }
}

std::int64_t RequestScorer::untrained_items(const ScoreRequest& r) const {
  const auto count = [&](const std::vector<std::int64_t>& items) {
    return std::ranges::count_if(items, [&](std::int64_t item) {
      return scorer_ ? !scorer_->is_trained(item) : !retriever_->is_trained(item);
    });
  };
  return count(r.items) + (r.events ? count(r.events->item) : 0);
}

std::int64_t RequestScorer::catalogue_size() const {
  return std::ssize(scorer_ ? scorer_->trained_items() : retriever_->items());
}

ScoreRequest RequestScorer::part_of(const ScoreRequest& request, std::int64_t first,
                                    std::int64_t count) const {
  const auto all = items_of(request).subspan(static_cast<std::size_t>(first));
  const auto part = all.first(std::min(all.size(), static_cast<std::size_t>(count)));
  ScoreRequest result = request;
  result.items.assign(part.begin(), part.end());
  return result;
}

void RequestScorer::join_parts(const ScoreRequest& request, ScoreAnswer& answers) const {
  if (request.asked != Asked::top) return;
  const std::size_t tasks = scorer_->tasks().size();
  ScoreAnswer best{.items = {}, .scores = {}, .has_history = answers.has_history};
  for (const std::size_t i : order_of(answers.scores, tasks, request.task, request.top)) {
    best.items.push_back(answers.items[i]);
    const auto row = answers.scores.begin() + static_cast<std::ptrdiff_t>(i * tasks);
    best.scores.insert(best.scores.end(), row, row + static_cast<std::ptrdiff_t>(tasks));
  }
  answers = std::move(best);
}

RequestScorer::Begun RequestScorer::begin(std::span<const ScoreRequest* const> requests) {
  Begun begun;
  begun.answers_.resize(requests.size());
  begun.open_ = gather(requests, begun.answers_);
  if (scorer_)
    begun.batches_ = begin_ranking(begun.open_);
  else
    retrieve(begun.open_);
  return begun;
}

std::vector<ScoreAnswer> RequestScorer::finish(Begun begun) {
  if (begun.batches_ != nullptr) {
    begun.batches_->flush();
    choose_top(begun.open_);
  }
  return std::move(begun.answers_);
}

std::vector<RequestScorer::Open> RequestScorer::gather(std::span<const ScoreRequest* const> requests,
                                                       std::vector<ScoreAnswer>& answers) {
  if (counted_.size() < requests.size()) counted_.resize(requests.size());
  std::vector<Open> open(requests.size());
  parallel_blocks(std::ssize(requests), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const ScoreRequest& request = *requests[i];
      std::int64_t time = request.time.value_or(kEnd);
      CountedEvents& counted = counted_[i];
      if (request.events)
        counted.read(*request.events, time, form_->columns());
      else
        counted.read(*data_, request.user, time, request.exclude_seen ? kEnd : scan_limit_, form_->columns());
      const EventColumns& events = counted.columns();
      answers[i].has_history = !events.time.empty();
      if (!request.time && !events.time.empty()) time = events.time.back();
      open[i] = {.request = &request, .answer = &answers[i], .events = &events, .time = time};
    }
  });
  return open;
}

std::unique_ptr<ScoringBatches> RequestScorer::begin_ranking(std::vector<Open>& open) {
  auto batches = std::make_unique<ScoringBatches>(*scorer_, run_, batch_size_);
  for (Open& o : open) {
    const ScoreRequest& request = *o.request;
    std::span<const std::int64_t> items = request.items;
    if (request.asked == Asked::top) {
      const auto all = items_of(request);
      o.left.assign(all.begin(), all.end());
      if (request.exclude_seen) {
        const std::vector<std::int64_t> seen = seen_items(*o.events, request.seen_actions);
        std::erase_if(o.left, [&](std::int64_t item) { return std::ranges::binary_search(seen, item); });
      }
      items = o.left;
    }
    batches->add({.name = &o - open.data() + 1,
                  .is_anchor = false,
                  .user = request.user,
                  .time = o.time,
                  .before = o.before(),
                  .events = o.events,
                  .context = request.context.empty() ? no_context_ : request.context},
                 items, o.answer->scores);
  }
  batches->begin();
  return batches;
}

void RequestScorer::choose_top(const std::vector<Open>& open) const {
  const std::size_t tasks = scorer_->tasks().size();
  for (const Open& o : open) {
    if (o.request->asked != Asked::top) continue;
    std::vector<float> scores;
    for (const std::size_t i : order_of(o.answer->scores, tasks, o.request->task, o.request->top)) {
      o.answer->items.push_back(o.left[i]);
      const auto row = o.answer->scores.begin() + static_cast<std::ptrdiff_t>(i * tasks);
      scores.insert(scores.end(), row, row + static_cast<std::ptrdiff_t>(tasks));
    }
    o.answer->scores = std::move(scores);
  }
}

void RequestScorer::retrieve(std::vector<Open>& open) {
  std::vector<const Open*> asked;
  std::vector<float> queries;
  for (std::size_t begin = 0; begin < open.size(); begin += static_cast<std::size_t>(batch_size_)) {
    const std::size_t end = std::min(open.size(), begin + static_cast<std::size_t>(batch_size_));
    std::vector<Retriever::User> users;
    for (std::size_t i = begin; i < end; ++i) {
      const ScoreRequest& request = *open[i].request;
      constexpr std::int64_t kMostFound = 1024;  // of lists, whose search takes as much memory as its width
      if (request.exclude_seen) open[i].left = seen_items(*open[i].events, request.seen_actions);
      users.push_back({.user = request.user,
                       .time = open[i].time,
                       .before = open[i].before(),
                       .events = open[i].events,
                       .seen = open[i].left,
                       .top = std::min(request.top, kMostFound)});
    }
    const Retriever::Answers found = retriever_->answers(users);
    if (found.user.empty()) continue;
    if (!retriever_->compares_vectors()) {
      for (std::size_t r = 0; r < found.user.size(); ++r)
        add_items(found.lists[r], *open[begin + static_cast<std::size_t>(found.user[r])].answer);
      continue;
    }
    const std::ptrdiff_t width = std::ssize(found.vectors) / std::ssize(found.user);
    auto row = found.vectors.begin();
    for (const std::int64_t u : found.user) {
      const Open& o = open[begin + static_cast<std::size_t>(u)];
      if (o.request->asked == Asked::vectors) {
        o.answer->scores.assign(row, row + width);
      } else {
        asked.push_back(&o);
        queries.insert(queries.end(), row, row + width);
      }
      row += width;
    }
  }
  if (!asked.empty()) find(asked, queries);
}

void RequestScorer::find(std::span<const Open* const> asked, std::span<const float> vectors) {
  CatalogueQueryList queries{
      .vectors = {vectors.begin(), vectors.end()}, .excluded_offsets = {0}, .excluded = {}};
  std::int64_t top = 0;
  for (const Open* const o : asked) {
    queries.excluded.insert(queries.excluded.end(), o->left.begin(), o->left.end());
    queries.excluded_offsets.push_back(std::ssize(queries.excluded));
    top = std::max(top, o->request->top);
  }
  auto lists = retriever_->top(queries, top);
  for (std::size_t q = 0; q < asked.size(); ++q) {
    lists[q].resize(std::min(lists[q].size(), static_cast<std::size_t>(asked[q]->request->top)));
    add_items(lists[q], *asked[q]->answer);
  }
}

}  // namespace hstu
