#include "hstu/benchmark/embedding_suite.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "hstu/base/clock.h"
#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/base/text.h"
#include "hstu/base/threads.h"
#include "hstu/benchmark/products.h"
#include "hstu/embedding/table_set.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/rows/unique.h"
#include "hstu/tensor/stage_timer.h"

namespace hstu {
namespace {

struct Case {
  std::string name;
  RowOptimizerKind optimizer;
  double cache = 0;  // of the rows that occur; 0: none
  bool on_host = false;
  bool prefetches = false;
  bool hides = false;  // prefetches beside products
};

const std::vector<Case>& cases() {
  constexpr auto kSgd = RowOptimizerKind::sgd, kAdam = RowOptimizerKind::adam;
  static const std::vector<Case> all{{"device_sgd", kSgd},
                                     {"device_adam", kAdam},
                                     {"cache_1.0_sgd", kSgd, 1.0},
                                     {"cache_1.0_adam", kAdam, 1.0},
                                     {"cache_0.8_sgd", kSgd, 0.8},
                                     {"cache_0.8_adam", kAdam, 0.8},
                                     {"cache_0.8_adam_prefetch", kAdam, 0.8, false, true},
                                     {"cache_0.8_adam_hidden", kAdam, 0.8, false, true, true},
                                     {"host_sgd", kSgd, 0, true},
                                     {"host_adam", kAdam, 0, true}};
  return all;
}

// Distinct ids (n) by table, in host memory and on the device. The rows of all tables are one after another,
// and `index` has the row of each id.
struct StepIds {
  std::vector<Tensor> ids, there;
  Tensor index;
  std::int64_t distinct = 0;
};

struct SuiteIds {
  std::vector<StepIds> steps;
  std::vector<std::int64_t> rows;  // by table, that occur in any step
  double distinct = 0;             // a step, on average
};

// As the benchmark draws them: the integer part of a continuous power law on [1, rows).
std::vector<std::int64_t> draw_ids(const EmbeddingSuiteOptions& o, std::int64_t rows, std::int64_t step,
                                   std::int64_t table) {
  RandomStream random{.key = derive_key(o.seed, fmt::format("embedding suite {} {}", step, table))};
  const double gamma = 1.0 - o.power, most = std::pow(static_cast<double>(rows), gamma);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(std::max<std::int64_t>(1, o.ids / o.tables)));
  for (std::int64_t& id : ids) {
    const double u = random.uniform();
    const double y =
        gamma == 0 ? std::pow(static_cast<double>(rows), u) : std::pow(u * (most - 1.0) + 1.0, 1.0 / gamma);
    id = std::clamp<std::int64_t>(static_cast<std::int64_t>(y), 1, rows - 1);
  }
  return ids;
}

SuiteIds draw_all(const EmbeddingSuiteOptions& o, std::int64_t rows, const Context& context) {
  SuiteIds drawn;
  const auto tables = static_cast<std::size_t>(o.tables);
  std::vector<std::vector<UniqueIds>> distinct(static_cast<std::size_t>(o.batches),
                                               std::vector<UniqueIds>(tables));
  parallel_blocks(o.batches * o.tables, 1, [&](std::int64_t at, std::int64_t) {
    distinct[static_cast<std::size_t>(at / o.tables)][static_cast<std::size_t>(at % o.tables)] =
        unique(draw_ids(o, rows, at / o.tables, at % o.tables));
  });
  std::int64_t sum = 0;
  for (const auto& of_step : distinct) {
    StepIds& step = drawn.steps.emplace_back();
    std::vector<std::int32_t> index;
    for (const UniqueIds& of_table : of_step) {
      step.ids.push_back(Tensor::from<std::int64_t>({std::ssize(of_table.ids)}, of_table.ids));
      step.there.push_back(step.ids.back().copy(context));
      for (const std::int32_t row : of_table.index)
        index.push_back(static_cast<std::int32_t>(step.distinct) + row);
      step.distinct += std::ssize(of_table.ids);
    }
    const Tensor place = ops::row_index(index);
    step.index = place.copy(context);
    context.stream.synchronize();  // host memory may end
    sum += step.distinct;
  }
  drawn.distinct = static_cast<double>(sum) / static_cast<double>(o.batches);
  for (std::size_t t = 0; t < tables; ++t) {
    std::vector<bool> occurs(static_cast<std::size_t>(rows));
    for (const auto& of_step : distinct)
      for (const std::int64_t id : of_step[t].ids) occurs[static_cast<std::size_t>(id)] = true;
    drawn.rows.push_back(std::count(occurs.begin(), occurs.end(), true));
  }
  return drawn;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto place = std::lround(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

class CaseRun {
 public:
  CaseRun(const EmbeddingSuiteOptions& o, const Case& c, const SuiteIds& drawn, const Context& context)
      : o_(o),
        case_(c),
        drawn_(drawn),
        compute_(context),
        timer_(context.stream),
        tables_(configs(), {.kind = c.optimizer}, o.seed, c.hides ? own_context(context.device()) : context) {
    compute_.trace = &timer_;
    // The gradients of all ids, the same in every step.
    const std::int64_t tokens = drawn.steps.front().index.size();
    RandomStream random{.key = 1};
    std::vector<float> values(static_cast<std::size_t>(tokens * o.dim));
    for (float& value : values) value = static_cast<float>(random.uniform()) - 0.5f;
    gradient_ = Tensor::from<float>({tokens, o.dim}, values).copy(context);
    context.stream.synchronize();
    if (c.hides) products_.emplace(o.product_ms, context);
  }

  Json run() {
    for (std::size_t s = 0; s < drawn_.steps.size(); ++s) train(s);
    if (case_.hides) {  // first what products and prefetches take one after the other
      prefetch_ms_.clear();
      model_ms_.clear();
      for (std::size_t s = 0; s < drawn_.steps.size(); ++s) train(s);
    }
    const double prefetch_alone = quantile(prefetch_ms_, 0.5), model_alone = quantile(model_ms_, 0.5);
    beside_ = case_.hides;
    train_ms_.clear();
    prefetch_ms_.clear();
    model_ms_.clear();
    stages_.clear();
    const CacheCounts before = counts();
    for (std::size_t s = 0; s < drawn_.steps.size(); ++s) train(s);
    const CacheCounts after = counts();
    std::vector<double> evaluate_ms;
    for (const StepIds& step : drawn_.steps) {
      const Clock::time_point start = Clock::now();
      Tape tape(compute_, false);
      ops::gather_rows(tape, look_up(step, RowAccess::read), step.index);
      compute_.stream.synchronize();
      evaluate_ms.push_back(1000 * seconds_since(start));
    }
    const auto steps = static_cast<double>(drawn_.steps.size());
    Json result{{"name", case_.name},
                {"train_ms", quantile(train_ms_, 0.5)},
                {"train_ms_p10", quantile(train_ms_, 0.1)},
                {"train_ms_p90", quantile(train_ms_, 0.9)},
                {"evaluate_ms", quantile(evaluate_ms, 0.5)},
                {"distinct", drawn_.distinct},
                {"rows", tables_.rows_alive()},
                {"stages", stages()}};
    if (!has_cache()) return result;
    const std::int64_t hits = after.hits - before.hits, misses = after.misses - before.misses;
    result["cache_rows"] = after.lines;
    result["hits"] =
        static_cast<double>(hits) / static_cast<double>(std::max<std::int64_t>(1, hits + misses));
    result["link_gb"] =
        static_cast<double>(after.bytes_in + after.bytes_out - before.bytes_in - before.bytes_out) / 1e9 /
        steps;
    if (case_.prefetches && !beside_) result["prefetch_ms"] = quantile(prefetch_ms_, 0.5);
    if (!beside_) return result;
    result["model_ms"] = model_alone;
    result["prefetch_ms"] = prefetch_alone;
    result["exposed"] = std::max(0.0, quantile(model_ms_, 0.5) - model_alone) / prefetch_alone;
    return result;
  }

 private:
  std::vector<TableConfig> configs() const {
    std::vector<TableConfig> configs;
    const std::int64_t rows = (case_.cache > 0 || case_.on_host ? o_.host_rows : o_.device_rows) / o_.tables;
    for (std::size_t t = 0; t < drawn_.rows.size(); ++t) {
      configs.push_back({.name = fmt::format("table{}", t), .rows = rows, .dim = o_.dim});
      if (case_.on_host) configs.back().place = TableTier::host;
      if (case_.cache > 0)
        configs.back().cache_rows = std::max<std::int64_t>(
            1, static_cast<std::int64_t>(case_.cache * static_cast<double>(drawn_.rows[t])));
    }
    return configs;
  }

  // Tables on the host have one on a GPU.
  bool has_cache() const { return tables_[0].cache_counts().has_value(); }

  CacheCounts counts() const {
    CacheCounts sum;
    for (std::size_t t = 0; t < tables_.size() && has_cache(); ++t) {
      const CacheCounts c = *tables_[t].cache_counts();
      sum.lines += c.lines;
      sum.hits += c.hits;
      sum.misses += c.misses;
      sum.bytes_in += c.bytes_in;
      sum.bytes_out += c.bytes_out;
    }
    return sum;
  }

  // The part of each table.
  std::vector<Tensor> parts_of(const StepIds& step, const Tensor& rows) const {
    std::vector<Tensor> parts;
    std::int64_t at = 0;
    for (const Tensor& ids : step.ids) {
      parts.push_back(rows.row_range(at, at + ids.size()));
      at += ids.size();
    }
    return parts;
  }

  Variable look_up(const StepIds& step, RowAccess access) {
    {
      const TraceRange stage(compute_, "lookup");
      selection_ = tables_.select(step.there, access, step.ids);
    }
    const TraceRange stage(compute_, "gather");
    Tensor rows = Tensor::empty({step.distinct, o_.dim}, DType::f32, tables_.context());
    std::vector<Tensor> parts = parts_of(step, rows);
    tables_.gather(selection_, parts);
    if (products_) compute_.stream.wait(tables_.stream());
    return Variable(std::move(rows));
  }

  void train(std::size_t s) {
    const StepIds& step = drawn_.steps[s];
    const Clock::time_point start = Clock::now();
    const Variable rows = look_up(step, RowAccess::train);
    Tape tape(compute_);
    Variable expanded;
    {
      const TraceRange stage(compute_, "expand");
      expanded = ops::gather_rows(tape, rows, step.index);
    }
    if (products_) compute_products(s);
    {
      const TraceRange stage(compute_, "reduce");
      tape.backward(expanded, Tensor(gradient_));
    }
    if (products_) tables_.stream().wait(compute_.stream);
    {
      const TraceRange stage(compute_, "update");
      tables_.update(selection_, parts_of(step, rows.gradient()), {.learning_rate = 0.1});
      tables_.end_step();
    }
    compute_.stream.synchronize();
    tables_.stream().synchronize();
    train_ms_.push_back(1000 * seconds_since(start));
    for (const StageTime& time : timer_.take())
      if (time.depth == 0) stages_[std::string(time.name)].push_back(time.ms());
    if (case_.prefetches && !products_) prefetch_after(s);
  }

  // The rows of the step after `s`, while nothing else is done.
  void prefetch_after(std::size_t s) {
    const Clock::time_point begin = Clock::now();
    tables_.prefetch(drawn_.steps[(s + 1) % drawn_.steps.size()].ids);
    tables_.stream().synchronize();
    prefetch_ms_.push_back(1000 * seconds_since(begin));
  }

  // The products in place of a model, and the prefetch beside them or after.
  void compute_products(std::size_t s) {
    compute_.stream.synchronize();
    const Clock::time_point begin = Clock::now();
    products_->run();
    if (beside_) tables_.prefetch(drawn_.steps[(s + 1) % drawn_.steps.size()].ids);
    compute_.stream.synchronize();
    tables_.stream().synchronize();
    model_ms_.push_back(1000 * seconds_since(begin));
    if (!beside_) prefetch_after(s);
  }

  // The bytes that a stage reads and writes at least, by NVIDIA's formulas.
  double least_bytes(const std::string& stage) const {
    const double distinct = drawn_.distinct, all = static_cast<double>(o_.ids),
                 row = 4.0 * static_cast<double>(o_.dim);
    const double state = 4.0 * static_cast<double>(tables_[0].state_width());
    if (stage == "lookup") return 16 * distinct;
    if (stage == "gather") return 2 * distinct * row;
    if (stage == "expand" || stage == "reduce") return (distinct + all) * row;
    return distinct * (row + 2 * (row + state));
  }

  Json stages() const {
    Json stages = Json::object();
    for (const auto& [name, times] : stages_) {
      const double ms = quantile(times, 0.5);
      stages[name] = {{"ms", ms}, {"gb_s", least_bytes(name) / 1e6 / ms}};
    }
    return stages;
  }

  const EmbeddingSuiteOptions& o_;
  const Case& case_;
  const SuiteIds& drawn_;
  Context compute_;
  StageTimer timer_;
  TableSet tables_;
  Tensor gradient_;
  RowSelection selection_;
  std::optional<Products> products_;
  bool beside_ = false;  // prefetches are beside products
  std::vector<double> train_ms_, prefetch_ms_, model_ms_;
  std::map<std::string, std::vector<double>> stages_;
};

}  // namespace

std::vector<std::string> embedding_suite_cases() {
  std::vector<std::string> names;
  for (const Case& one : cases()) names.push_back(one.name);
  return names;
}

Json benchmark_embedding_suite(const EmbeddingSuiteOptions& o) {
  const std::vector<std::string> names = embedding_suite_cases();
  for (const std::string& name : o.cases)
    if (!contains(names, name)) fail_usage("--cases: there is no \"{}\"{}", name, suggestion(name, names));
  const DeviceChoice choice = choose_device(o.device);
  const Context context = open_device(choice.device);
  Json results = Json::array();
  std::map<std::int64_t, SuiteIds> drawn;  // by nominal rows of a table
  for (const Case& one : cases()) {
    if (!o.cases.empty() && !contains(o.cases, one.name)) continue;
    const std::int64_t rows = (one.cache > 0 || one.on_host ? o.host_rows : o.device_rows) / o.tables;
    if (!drawn.contains(rows)) drawn[rows] = draw_all(o, rows, context);
    results.push_back(CaseRun(o, one, drawn[rows], context).run());
    context.memory->trim();
  }
  return {{"device", to_string(choice.device)}, {"cases", results}};
}

std::string embedding_suite_text(const Json& result) {
  constexpr const char* kStages[] = {"lookup", "gather", "expand", "reduce", "update"};
  std::vector<std::vector<std::string>> rows{{"case", "train ms", "evaluate ms", "hits", "GB over the link"}};
  for (const char* stage : kStages) rows.front().emplace_back(stage);
  rows.front().emplace_back("prefetch");
  rows.front().emplace_back("exposed");
  for (const Json& one : result.at("cases")) {
    const bool cached = one.contains("hits");
    rows.push_back({one.at("name").get<std::string>(),
                    fmt::format("{:.2f}", one.at("train_ms").get<double>()),
                    fmt::format("{:.2f}", one.at("evaluate_ms").get<double>()),
                    cached ? fmt::format("{:.1f} %", 100 * one.at("hits").get<double>()) : "",
                    cached ? fmt::format("{:.3f}", one.at("link_gb").get<double>()) : ""});
    for (const char* stage : kStages)
      rows.back().push_back(fmt::format("{:.2f}", one.at("stages").at(stage).at("ms").get<double>()));
    rows.back().push_back(
        one.contains("prefetch_ms") ? fmt::format("{:.2f}", one.at("prefetch_ms").get<double>()) : "");
    rows.back().push_back(
        one.contains("exposed") ? fmt::format("{:.0f} %", 100 * one.at("exposed").get<double>()) : "");
  }
  return table(rows);
}

}  // namespace hstu
