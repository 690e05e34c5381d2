#include "hstu/kinds/semantic_ids/code_search.h"

#include <algorithm>
#include <utility>

#include "hstu/device/keeping_pool.h"
#include "hstu/device/launch_recording.h"
#include "hstu/kinds/retrieval/retrieval_layout.h"
#include "hstu/model/stages.h"
#include "hstu/ops/beam_step.h"

namespace hstu {

using namespace semantic_ids;

SearchedHistories::SearchedHistories(const Batch& batch, std::int64_t levels) {
  const auto of_events = batch.values<std::int64_t>(retrieval::kOffsets);
  const auto codes = batch.values<std::int32_t>(kEventCodes);
  const auto add = [&](std::int32_t row, std::int32_t is_bos, std::int64_t at) {
    code.push_back(row), bos.push_back(is_bos), place.push_back(static_cast<std::int32_t>(at));
  };
  for (std::size_t b = 0; b + 1 < of_events.size(); ++b) {
    const std::int64_t first = of_events[b], count = of_events[b + 1] - first;
    if (count == 0) continue;
    events.push_back(count);
    for (std::int64_t j = 0; j < count; ++j)
      for (std::int64_t h = 0; h < levels; ++h)
        add(codes[static_cast<std::size_t>((first + j) * levels + h)], -1, j * (levels + 1) + h);
    add(-1, 0, count * (levels + 1) - 1);
    offsets.push_back(tokens());
  }
}

Tensor lists_of(const ops::Beams& beams, const CodeTrie& trie, std::int64_t width) {
  const std::int64_t levels = trie.levels(), places = beams.node.defined() ? beams.node.size() : 0;
  Tensor found = Tensor::empty({places / width, width * (levels + 1)}, DType::f32);
  float* to = found.mutable_data<float>();
  for (std::int64_t b = 0; b < places; ++b) {
    const std::int64_t tuple = beams.node.data<std::int32_t>()[b];
    for (std::int64_t h = 0; h < levels; ++h)
      *to++ = tuple < 0 ? -1.0F : static_cast<float>(trie.code(tuple, h));
    *to++ = tuple < 0 ? -1.0F : beams.score.data<float>()[b];
  }
  return found;
}

// The lists of a search on the device, and what it leaves.
struct CodeSearch::Plan {
  Plan(const SearchedHistories& histories, const Variable& table, std::int64_t levels, std::int64_t width,
       const Context& context)
      : tokens(histories.tokens()),
        users(histories.users()),
        rows(table),
        numbers(Tensor::empty({3 * tokens + 2 * users + (levels - 1) * users * width}, DType::i32, context)),
        offsets(Tensor::empty({2 * (users + 1)}, DType::i64, context)),
        first(ops::first_beams(users, context)) {}

  bool fits(const SearchedHistories& histories, const Variable& table) const {
    return histories.tokens() == tokens && histories.users() == users &&
           table.value().raw() == rows.value().raw();
  }
  void copy(const SearchedHistories& histories, std::int64_t levels, std::int64_t width,
            const Stream& stream) {
    std::vector<std::int32_t> all = histories.code;
    all.insert(all.end(), histories.bos.begin(), histories.bos.end());
    all.insert(all.end(), histories.place.begin(), histories.place.end());
    for (std::int64_t u = 0; u < users; ++u)
      all.push_back(static_cast<std::int32_t>(histories.offsets[static_cast<std::size_t>(u) + 1] - 1));
    for (std::int64_t u = 0; u < users; ++u)
      all.push_back(
          histories.place[static_cast<std::size_t>(histories.offsets[static_cast<std::size_t>(u) + 1] - 1)]);
    for (std::int64_t level = 1; level < levels; ++level)
      for (const std::int64_t events : histories.events)
        all.insert(all.end(), static_cast<std::size_t>(width),
                   static_cast<std::int32_t>(events * (levels + 1) + level - 1));
    numbers.copy_from(Tensor::from<std::int32_t>(numbers.shape(), all), stream);
    std::vector<std::int64_t> both = histories.offsets;
    for (std::int64_t u = 0; u <= users; ++u) both.push_back(u);
    offsets.copy_from(Tensor::from<std::int64_t>(offsets.shape(), both), stream);
  }

  Tensor code() const { return numbers.row_range(0, tokens); }
  Tensor bos() const { return numbers.row_range(tokens, 2 * tokens); }
  Tensor place() const { return numbers.row_range(2 * tokens, 3 * tokens); }
  StackRows all() const { return {.rows = {}, .offsets = offsets.row_range(0, users + 1), .names = {}}; }
  // The last token of each history.
  StackRows last() const {
    return {.rows = numbers.row_range(3 * tokens, 3 * tokens + users),
            .offsets = offsets.row_range(users + 1, 2 * (users + 1)),
            .names = {}};
  }
  Tensor last_place() const { return numbers.row_range(3 * tokens + users, 3 * tokens + 2 * users); }
  // Of the tokens of the codes of the level before.
  Tensor place_of_beams(std::int64_t level, std::int64_t width) const {
    const std::int64_t at = 3 * tokens + 2 * users + (level - 1) * users * width;
    return numbers.row_range(at, at + users * width);
  }

  std::int64_t tokens, users;
  Variable rows;
  Tensor numbers, offsets;
  ops::Beams first, beams;
  DecoderBeams keys;
  std::vector<LaunchRecording> recordings;  // of each level
};

CodeSearch::CodeSearch(const SemanticIds& model, const Context& context, const Options& options)
    : model_(model), context_(context), options_(options) {
  require(model.softmax_.has_value(), "a search on the device needs softmax blocks");
  options_.replays = options.replays && !context.device().is_host();
  if (options_.replays) context_.memory = std::make_shared<KeepingPool>(context.memory);
  if (options_.times)
    for (std::int64_t i = 0; i <= model.codes_->levels(); ++i) events_.emplace_back(context.device(), true);
}

CodeSearch::~CodeSearch() = default;

void CodeSearch::run(std::int64_t level) {
  const ops::KeptWeights::Use use(weights_);
  const TraceRange range(context_, level == 0 ? "histories" : "beams");
  Tape tape(context_, false);
  Plan& plan = *plan_;
  const std::int64_t width = model_.config_.beam;
  Variable x;
  if (level == 0) {
    plan.beams = plan.first;
    plan.keys = {.beams = width,
                 .offsets = plan.all().offsets,
                 .history = {},
                 .codes = {},
                 .ancestors = {},
                 .positions = {}};
    const SemanticIds::Tokens tokens{.code = plan.code(),
                                     .bos = plan.bos(),
                                     .at = {.all = plan.all(),
                                            .wanted = plan.last(),
                                            .positions = plan.place(),
                                            .wanted_positions = plan.last_place(),
                                            .wants_last = true,
                                            .keys = &plan.keys.history}};
    x = model_.encode(tape, plan.rows, tokens, Draws(), {});
  } else {
    plan.keys.ancestors = plan.beams.ancestors;
    plan.keys.positions = plan.place_of_beams(level, width);
    x = (*model_.softmax_)(
        tape,
        model_.embed(
            tape, plan.rows,
            {.code = plan.beams.code,
             .bos = {},
             .at = {.all = {}, .wanted = {}, .positions = plan.keys.positions, .wanted_positions = {}}},
            Draws()),
        plan.keys);
  }
  StageRange stage(tape, kHeadStage);
  const Tensor logits = model_.logits(tape, model_.normed(tape, x), level).value();
  plan.beams = ops::beam_step(model_.trie_levels_[static_cast<std::size_t>(level)], plan.beams, level, logits,
                              width, context_);
}

// Of each level if they are timed, otherwise of all.
void CodeSearch::record() {
  const std::int64_t levels = model_.codes_->levels(), each = options_.times ? 1 : levels;
  for (std::int64_t first = 0; first < levels; first += each)
    plan_->recordings.emplace_back(context_.stream, [&] {
      for (std::int64_t level = first; level < first + each; ++level) run(level);
    });
}

void CodeSearch::begin(const Batch& batch, const Variable& rows) {
  const std::int64_t levels = model_.codes_->levels(), width = model_.config_.beam;
  const SearchedHistories histories(batch, levels);
  const bool again = options_.replays && plan_ != nullptr && plan_->fits(histories, rows);
  if (!again) plan_ = std::make_unique<Plan>(histories, rows, levels, width, context_);
  plan_->copy(histories, levels, width, context_.stream);
  if (plan_->users == 0) return;
  if (again && plan_->recordings.empty()) record();
  std::size_t marks = 0;
  const auto mark = [&] {
    if (options_.times) events_[marks++].record(context_.stream);
  };
  mark();
  if (again) {
    for (const LaunchRecording& recording : plan_->recordings) recording.replay(), mark();
  } else {
    for (std::int64_t level = 0; level < levels; ++level) run(level), mark();
  }
}

Tensor CodeSearch::finish() {
  ops::Beams beams;
  if (plan_->users > 0) {
    beams.node = plan_->beams.node.to_host(context_.stream);
    beams.score = plan_->beams.score.to_host(context_.stream);
    weights_.set_ready();
  }
  return lists_of(beams, *model_.trie_, model_.config_.beam);
}

std::vector<double> CodeSearch::level_ms() const {
  std::vector<double> ms;
  for (std::size_t i = 1; i < events_.size(); ++i) {
    events_[i].synchronize();
    ms.push_back(events_[i].milliseconds_since(events_[i - 1]));
  }
  return ms;
}

}  // namespace hstu
