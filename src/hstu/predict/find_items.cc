#include "hstu/predict/find_items.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/options/make_task.h"
#include "hstu/predict/histories.h"
#include "hstu/predict/item_columns.h"
#include "hstu/predict/seen_items.h"
#include "hstu/predict/user_reader.h"
#include "hstu/score/retriever.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {
namespace {

// That are compared with the catalogue together: each time all of it is read.
constexpr std::size_t kQueriesAtOnce = 1024, kGpuQueriesAtOnce = 16384;

void check_options(const PredictOptions& options) {
  if (options.top < 1) fail_usage("--users needs --top: how many items to find for each user");
  if (!options.requests.empty() || !options.catalogue.empty() || options.trained_items)
    fail_usage(
        "--users asks for items of the whole catalogue: leave --requests, --catalogue and --trained-items "
        "out");
  if (!options.by.empty()) fail_usage("--by: a model that finds items has one score: leave it out");
  if (is_standard_stream(options.users) && is_standard_stream(options.events))
    fail_usage("of --users and --events only one can be -, standard input: name files");
}

// The user's events before the request, and its time.
Retriever::User user_at(const Dataset& histories, const UserRequest& request) {
  const std::int64_t time = request.time.value_or(std::numeric_limits<std::int64_t>::max());
  Retriever::User user{
      .user = request.user, .time = 0, .before = histories.events_before_time(request.user, time)};
  if (request.time) {
    user.time = *request.time;
  } else if (!user.before.empty()) {
    user.time = histories.time()[user.before.latest()];
  }
  return user;
}

std::vector<TableOutput::Column> columns_of(const Manifest& manifest) {
  using Type = TableOutput::Type;
  return {{"request", Type::text},
          {"user", id_column_type(manifest, "user")},
          {"item", id_column_type(manifest, "item")},
          {"score", Type::real},
          {"rank", Type::integer}};
}

// Encodes users batch by batch, and compares many with the catalogue at once.
class Search {
 public:
  Search(const PredictOptions& options, const RunOptions& run, const Dataset& histories, Retriever& retriever,
         TablePlace& place)
      : histories_(histories),
        retriever_(retriever),
        items_(with_names(retriever.items(), histories)),
        top_(options.top),
        top_of_lists_(options.beam > 0 && !options.exclude_seen ? 0 : options.top),
        batch_size_(static_cast<std::size_t>(options.batch_size > 0 ? options.batch_size
                                                                    : evaluation_batch_size(run))),
        queries_at_once_(retriever.catalogue().context.device().is_host() ? kQueriesAtOnce
                                                                          : kGpuQueriesAtOnce),
        output_(place, columns_of(histories.manifest())) {
    if (options.exclude_seen) seen_.emplace(histories, options.seen_actions);
    queries_.excluded_offsets.push_back(0);
  }

  void add(UserRequest request) {
    ++result_.requests;
    Retriever::User user = user_at(histories_, request);
    if (user.before.empty()) {
      ++result_.without_history;
      return;
    }
    if (seen_) user.seen = seen_of_batch_.emplace_back(seen_->seen(user.before));
    user.top = top_of_lists_;
    batch_.push_back(user);
    waiting_.push_back(std::move(request));
    if (batch_.size() == batch_size_) encode();
  }

  PredictResult finish() {
    encode();
    search();
    output_.commit();
    return result_;
  }
  std::int64_t scores() const { return result_.scores; }

 private:
  void encode() {
    Retriever::Answers found = retriever_.answers(batch_);
    queries_.vectors.insert(queries_.vectors.end(), found.vectors.begin(), found.vectors.end());
    std::ranges::move(found.lists, std::back_inserter(lists_));
    for (const std::int64_t u : found.user) {
      const auto i = static_cast<std::size_t>(u);
      queries_.excluded.insert(queries_.excluded.end(), batch_[i].seen.begin(), batch_[i].seen.end());
      result_.excluded += std::ssize(batch_[i].seen);
      queries_.excluded_offsets.push_back(std::ssize(queries_.excluded));
      asked_.push_back(std::move(waiting_[i]));
    }
    // Users whose events are none that the model reads.
    result_.without_history += std::ssize(batch_) - std::ssize(found.user);
    batch_.clear();
    seen_of_batch_.clear();
    waiting_.clear();
    if (asked_.size() >= queries_at_once_) search();
  }

  void search() {
    if (asked_.empty()) return;
    const auto lists =
        retriever_.compares_vectors() ? retriever_.top(queries_, top_) : std::exchange(lists_, {});
    for (std::size_t q = 0; q < lists.size(); ++q) {
      if (lists[q].empty()) ++result_.without_items;
      const std::size_t count = std::min(lists[q].size(), static_cast<std::size_t>(top_));
      for (std::size_t r = 0; r < count; ++r) write(asked_[q], lists[q][r], r);
    }
    asked_.clear();
    queries_ = {};
    queries_.excluded_offsets.push_back(0);
  }

  void write(const UserRequest& request, const kernels::ScoredItem& item, std::size_t rank) {
    output_.put(request.id);
    output_.put(request.user_text);
    if (items_.texts.empty()) {
      output_.put(item.id);
    } else {
      const auto at = std::lower_bound(items_.ids.begin(), items_.ids.end(), item.id) - items_.ids.begin();
      output_.put(items_.texts[static_cast<std::size_t>(at)]);
    }
    output_.put(item.score);
    output_.put(static_cast<std::int64_t>(rank + 1));
    output_.end_row();
    ++result_.scores;
  }

  const Dataset& histories_;
  Retriever& retriever_;
  Items items_;  // of the catalogue
  std::optional<UnseenItems> seen_;
  std::int64_t top_, top_of_lists_;  // 0: a width that was asked for finds what it finds
  std::size_t batch_size_, queries_at_once_;
  TableOutput output_;
  std::vector<Retriever::User> batch_;                   // to be encoded
  std::deque<std::vector<std::int64_t>> seen_of_batch_;  // to which they refer
  std::vector<UserRequest> waiting_;                     // of each of them
  std::vector<UserRequest> asked_;                       // of each query
  CatalogueQueryList queries_;
  std::vector<Retriever::List> lists_;  // of queries that the model has answered itself
  PredictResult result_;
};

}  // namespace

PredictResult find_items(const PredictOptions& options) {
  check_options(options);
  TablePlace place(options.output);
  ModelFolder model = open_model_folder(options.model, options.checkpoint);
  if (!options.device.empty()) model.options.device = options.device;
  set_beam(model.options.model.options(), options.beam);
  const Histories histories(model, options.data, options.events, options.columns, scratch_of(options));
  const Dataset& dataset = histories.dataset();
  Retriever retriever(model.options, model.checkpoint, dataset, dataset,
                      make_task(model.options, facts_of(dataset)), options.row_stable);
  UserReader users(options.users, options.columns, dataset, histories.count_from_1970());
  Search search(options, model.options, dataset, retriever, place);
  const Clock::time_point start = Clock::now();
  Progress progress("predict", 0, "items");
  UserRequest request;
  while (users.next(request)) {
    if (options.stop != nullptr && *options.stop) throw Stopped();
    search.add(std::exchange(request, {}));
    progress.advance_to(search.scores());
  }
  PredictResult result = search.finish();
  result.seconds = seconds_since(start);
  result.unknown_texts = histories.unknown_texts();
  result.untrained_events = histories.untrained_events(retriever);
  progress.advance_to(result.scores);
  progress.finish(fmt::format("{} users", with_separators(result.requests)));
  if (result.without_history > 0)
    print_note("{} of {} users have no event before their time, and no rows in the output\n",
               with_separators(result.without_history), with_separators(result.requests));
  if (result.without_items > 0)
    print_note("{} of {} users have had all items, and have no rows in the output\n",
               with_separators(result.without_items), with_separators(result.requests));
  tell_unknown_inputs(result);
  add_bad_ids(retriever.bad_ids(), !retriever.compares_vectors(), result);
  return result;
}

}  // namespace hstu
