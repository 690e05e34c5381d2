#include "hstu/predict/predict.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <unistd.h>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/options/make_task.h"
#include "hstu/predict/find_items.h"
#include "hstu/predict/histories.h"
#include "hstu/predict/item_columns.h"
#include "hstu/predict/request_reader.h"
#include "hstu/predict/seen_items.h"
#include "hstu/predict/table_output.h"
#include "hstu/run/folder.h"
#include "hstu/run/pruned.h"
#include "hstu/score/needed_columns.h"
#include "hstu/score/scoring_batches.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {
namespace {

void check_standard_input(const PredictOptions& options) {
  int readers = 0;
  for (const Path* const path : {&options.requests, &options.events, &options.catalogue})
    if (is_standard_stream(*path)) ++readers;
  if (readers > 1)
    fail_usage("of --requests, --events and --catalogue only one can be -, standard input: name files");
}

// Refuses models that read what a request does not have, and says where a score depends on other requests.
void check_requests(const Task& task) {
  if (!task.no_requests.empty()) fail_usage("{}", task.no_requests);
  if (!task.note_on_requests.empty()) print_note("note: {}\n", task.note_on_requests);
}

std::size_t rank_by(const std::string& word, const std::vector<std::string>& tasks) {
  if (word.empty()) return 0;
  const auto found = std::find(tasks.begin(), tasks.end(), word);
  if (found == tasks.end()) fail_usage("--by: the model has no task \"{}\"{}", word, suggestion(word, tasks));
  return static_cast<std::size_t>(found - tasks.begin());
}

std::vector<TableOutput::Column> output_columns(const std::vector<std::string>& tasks, bool ranks,
                                                const Manifest& manifest) {
  using Type = TableOutput::Type;
  std::vector<TableOutput::Column> columns{{"request", Type::text},
                                           {"user", id_column_type(manifest, "user")},
                                           {"item", id_column_type(manifest, "item")}};
  for (const std::string& task : tasks)
    columns.push_back({tasks.size() == 1 ? "score" : "score_" + task, Type::real});
  if (ranks) columns.push_back({"rank", Type::integer});
  return columns;
}

// Gathers candidates of requests in batches, and writes the scores of each request together, in order.
class Prediction {
 public:
  Prediction(const PredictOptions& options, const RunOptions& run, const Dataset& histories, Scorer& scorer,
             Items catalogue, TablePlace& place)
      : histories_(histories),
        scorer_(scorer),
        catalogue_(std::move(catalogue)),
        top_(options.top),
        by_(rank_by(options.by, scorer.tasks())),
        batches_(scorer, run, options.batch_size),
        output_(place, output_columns(scorer.tasks(), options.top > 0, histories.manifest())) {
    if (options.exclude_seen) seen_.emplace(histories, options.seen_actions);
  }

  void add(Request request) {
    open_.emplace_back().request = std::move(request);
    const Request& added = open_.back().request;
    const UserEvents events = histories_.events_before_time(added.user, added.time);
    if (events.empty()) ++result_.without_history;
    ++result_.requests;
    if (seen_) exclude_seen(events, open_.back());
    const std::vector<std::int64_t>& items = ids_of(open_.back());
    for (const std::int64_t item : items)
      if (!scorer_.is_trained(item)) ++result_.untrained_items;
    batches_.add({.name = added.number,
                  .is_anchor = false,
                  .user = added.user,
                  .time = added.time,
                  .before = events,
                  .context = added.context},
                 items, open_.back().scores);
    write_complete();
  }

  PredictResult finish() {
    batches_.flush();
    write_complete();
    output_.commit();
    return result_;
  }

  std::int64_t scores() const { return result_.scores; }

 private:
  struct Open {
    Request request;
    std::vector<float> scores = {};  // (items, tasks), the first of them
    // Of the items that are left, if some were left out: their ids, and their indices in items_of().
    std::vector<std::int64_t> ids = {};
    std::vector<std::size_t> places = {};
    bool some_left_out = false;
  };

  const Items& items_of(const Request& request) const {
    return catalogue_.ids.empty() ? request.items : catalogue_;
  }

  // The items to score.
  const std::vector<std::int64_t>& ids_of(const Open& open) const {
    return open.some_left_out ? open.ids : items_of(open.request).ids;
  }

  void exclude_seen(const UserEvents& events, Open& open) {
    const std::vector<std::int64_t>& all = items_of(open.request).ids;
    const std::vector<std::size_t>& others = seen_->others(all, events);
    if (others.size() == all.size()) return;
    result_.excluded += static_cast<std::int64_t>(all.size() - others.size());
    if (others.empty()) ++result_.without_items;
    open.some_left_out = true;
    open.places = others;
    for (const std::size_t i : others) open.ids.push_back(all[i]);
  }

  // Requests are complete in their order.
  void write_complete() {
    const std::size_t tasks = scorer_.tasks().size();
    for (; !open_.empty() && open_.front().scores.size() == ids_of(open_.front()).size() * tasks;
         open_.pop_front()) {
      result_.scores += static_cast<std::int64_t>(open_.front().scores.size() / tasks);
      write(open_.front());
    }
  }

  void write(const Open& open) {
    const Items& items = items_of(open.request);
    const std::size_t tasks = scorer_.tasks().size();
    const std::vector<std::size_t> order = order_of(open.scores, tasks, by_, top_);
    for (std::size_t r = 0; r < order.size(); ++r) {
      const std::size_t i = order[r], place = open.some_left_out ? open.places[i] : i;
      output_.put(open.request.id);
      output_.put(open.request.user_text);
      if (items.texts.empty()) {
        output_.put(items.ids[place]);
      } else {
        output_.put(items.texts[place]);
      }
      for (std::size_t k = 0; k < tasks; ++k) output_.put(open.scores[i * tasks + k]);
      if (top_ > 0) output_.put(static_cast<std::int64_t>(r + 1));
      output_.end_row();
    }
  }

  const Dataset& histories_;
  Scorer& scorer_;
  Items catalogue_;
  std::optional<UnseenItems> seen_;
  std::int64_t top_;
  std::size_t by_;
  ScoringBatches batches_;
  TableOutput output_;
  std::deque<Open> open_;  // without all scores; batches_ refers to their items, contexts and scores
  PredictResult result_;
};

Items trained_items(const Scorer& scorer, const Dataset& dataset) {
  check(!scorer.trained_items().empty(), "the model has seen no item: --trained-items has none to score");
  return with_names(scorer.trained_items(), dataset);
}

Items catalogue_of(const PredictOptions& options, const Scorer& scorer, const Dataset& dataset) {
  if (!options.catalogue.empty() && options.trained_items)
    fail_usage("--catalogue and --trained-items both name the items to score: leave one of them out");
  if (!options.catalogue.empty()) {
    return read_catalogue(options.catalogue, options.columns, dataset.manifest().hashed.contains("item"));
  }
  return options.trained_items ? trained_items(scorer, dataset) : Items();
}

// What a reader of the scores must know.
void tell_unknown(const PredictResult& result) {
  if (result.without_items > 0) {
    print_note("{} of {} requests have no rows in the output: their users have had all of their items\n",
               with_separators(result.without_items), with_separators(result.requests));
  }
  if (result.without_history > 0) {
    print_note(
        "{} of {} requests have no event of their user before their time: scored with an empty history\n",
        with_separators(result.without_history), with_separators(result.requests));
  }
  if (result.untrained_items > 0) {
    print_note("{} of {} scores are of items that training has not seen: their rows have initial values\n",
               with_separators(result.untrained_items), with_separators(result.scores));
  }
}

// `model` becomes that of a newer checkpoint if the run has pruned the one that it has.
std::unique_ptr<Scorer> open_scorer(const PredictOptions& options, ModelFolder& model,
                                    const Dataset& histories) {
  const auto open = [&] {
    Task task = make_task(model.options, facts_of(histories));
    check_requests(task);
    return std::make_unique<Scorer>(model.options, model.checkpoint, histories, std::move(task),
                                    options.row_stable);
  };
  try {
    return open();
  } catch (const Error&) {
    if (is_export(options.model)) throw;
    const Path checkpoints = RunFolder{options.model}.checkpoints();
    if (!is_replaced(checkpoints, options.checkpoint, model.checkpoint.path())) throw;
  }
  return read_checkpoint(RunFolder{options.model}.checkpoints(), options.checkpoint, [&](const Path&) {
    const std::string device = model.options.device;
    model = open_model_folder(options.model, options.checkpoint);
    model.options.device = device;
    return open();
  });
}

}  // namespace

Path scratch_of(const PredictOptions& options) {
  return is_standard_stream(options.output) ? Path(fmt::format("hstu-predict.{}.events", ::getpid()))
                                            : Path(options.output.string() + ".events");
}

PredictResult predict(const PredictOptions& options) {
  if (!options.users.empty()) return find_items(options);
  if (options.requests.empty()) fail_usage("--requests or --users is required");
  check_standard_input(options);
  TablePlace place(options.output);
  ModelFolder model = open_model_folder(options.model, options.checkpoint);
  if (!options.device.empty()) model.options.device = options.device;
  const Histories histories(model, options.data, options.events, options.columns, scratch_of(options));
  const Manifest& manifest = histories.dataset().manifest();
  const std::unique_ptr<Scorer> opened = open_scorer(options, model, histories.dataset());
  Scorer& scorer = *opened;
  Items catalogue = catalogue_of(options, scorer, histories.dataset());
  RequestReader requests(options.requests, options.columns, histories.dataset(),
                         context_of_requests(model.options, manifest), !catalogue.ids.empty(),
                         histories.count_from_1970());
  Prediction prediction(options, model.options, histories.dataset(), scorer, std::move(catalogue), place);
  const Clock::time_point start = Clock::now();
  Progress progress("predict", 0, "scores");
  Request request;
  while (requests.next(request)) {
    if (options.stop != nullptr && *options.stop) throw Stopped();
    prediction.add(std::move(request));
    progress.advance_to(prediction.scores());
    request = Request();
  }
  PredictResult result = prediction.finish();
  result.seconds = seconds_since(start);
  progress.advance_to(result.scores);
  progress.finish(fmt::format("{} requests", with_separators(result.requests)));
  result.unknown_texts = requests.unknown_texts() + histories.unknown_texts();
  result.untrained_events = histories.untrained_events(scorer);
  tell_unknown_inputs(result);
  tell_unknown(result);
  add_bad_ids(scorer.bad_ids(), false, result);
  return result;
}

void tell_unknown_inputs(const PredictResult& result) {
  if (result.unknown_texts > 0)
    print_note("{} values of context columns are texts that the dataset does not have: read as 0\n",
               with_separators(result.unknown_texts));
  if (result.untrained_events > 0)
    print_note(
        "{} events of the table have items that training has not seen: their rows have initial values\n",
        with_separators(result.untrained_events));
}

void add_bad_ids(const BadIds& bad_ids, bool of_codes, PredictResult& result) {
  for (const BadIds::Feature& feature : bad_ids.features()) {
    if (feature.count == 0) continue;
    result.bad_ids[feature.name] = feature.count;
    const std::string count = with_separators(feature.count);
    if (of_codes)
      print_note("{} events of histories are of items without codes, the first is {}: read as zeros\n", count,
                 feature.first_id);
    else
      print_note("{} ids of {} are outside of [0, {}), the first is {}: read as rows of zeros\n", count,
                 feature.name, with_separators(feature.rows), feature.first_id);
  }
}

Json to_json(const PredictResult& result) {
  Json json{{"requests", result.requests},
            {"scores", result.scores},
            {"seconds", result.seconds},
            {"excluded", result.excluded},
            {"scores_per_s", result.seconds > 0 ? static_cast<double>(result.scores) / result.seconds : 0},
            {"without_history", result.without_history},
            {"untrained_items", result.untrained_items},
            {"untrained_events", result.untrained_events},
            {"unknown_texts", result.unknown_texts}};
  json["bad_ids"] = Json::object();
  for (const auto& [feature, count] : result.bad_ids) json["bad_ids"][feature] = count;
  return json;
}

}  // namespace hstu
