#include "hstu/model/stack_samples.h"

#include <algorithm>
#include <bit>

namespace hstu {
namespace {

using Numbers = StackSample::Numbers;

template <typename Number>
std::vector<Number> on_host(const Tensor& list, const Context& context) {
  if (!list.defined()) return {};
  const Tensor host = list.to_host(context.stream);
  return {host.data<Number>(), host.data<Number>() + host.size()};
}

// Undefined where all are 0: a rank may have such samples alone, and lists of none, while others have some.
Tensor any_of(const std::vector<std::int32_t>& counts, const Context& context) {
  const bool any = std::ranges::any_of(counts, [](std::int32_t count) { return count > 0; });
  return any ? on_device(counts, context) : Tensor();
}

Numbers part(const std::vector<std::int64_t>& list, std::int64_t first, std::int64_t count) {
  if (list.empty()) return {};
  return Numbers(list).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

void append(Numbers more, std::vector<std::int64_t>& list) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

StackForm::StackForm(const StackTokens& tokens)
    : names(tokens.all.names.defined()),
      times(tokens.all.query_time.defined()),
      wants_some(tokens.wanted.rows.defined()) {}

std::int64_t longest_sample(const StackTokens& tokens, const Context& context) {
  const std::vector<std::int64_t> offsets = on_host<std::int64_t>(tokens.all.offsets, context);
  std::int64_t longest = 0;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b)
    longest = std::max(longest, offsets[b + 1] - offsets[b]);
  return longest;
}

SamplesOfBatch::SamplesOfBatch(const StackTokens& tokens, const Context& context)
    : offsets_(on_host<std::int64_t>(tokens.all.offsets, context)),
      names_(on_host<std::int64_t>(tokens.all.names, context)),
      query_time_(on_host<std::int64_t>(tokens.all.query_time, context)),
      key_time_(on_host<std::int64_t>(tokens.all.key_time, context)),
      contexts_(on_host<std::int32_t>(tokens.mask.contexts, context)),
      targets_(on_host<std::int32_t>(tokens.mask.targets, context)),
      scale_(tokens.scale) {
  if (!tokens.wanted.rows.defined()) return;
  wanted_offsets_ = on_host<std::int64_t>(tokens.wanted.offsets, context);
  wanted_names_ = on_host<std::int64_t>(tokens.wanted.names, context);
  wanted_time_ = on_host<std::int64_t>(tokens.wanted.query_time, context);
}

std::vector<StackSample> SamplesOfBatch::all(std::int64_t owner) const {
  std::vector<StackSample> samples;
  for (std::size_t b = 0; b + 1 < offsets_.size(); ++b) {
    StackSample s{.owner = owner, .first = offsets_[b], .tokens = offsets_[b + 1] - offsets_[b]};
    s.wanted = s.tokens, s.scale = scale_;
    if (!contexts_.empty()) s.contexts = contexts_[b];
    if (!targets_.empty()) s.targets = targets_[b];
    s.names = part(names_, s.first, s.tokens);
    s.query_time = part(query_time_, s.first, s.tokens);
    s.key_time = part(key_time_, s.first, s.tokens);
    if (!wanted_offsets_.empty()) {
      s.wanted = wanted_offsets_[b + 1] - wanted_offsets_[b];
      s.wanted_names = part(wanted_names_, wanted_offsets_[b], s.wanted);
      s.wanted_time = part(wanted_time_, wanted_offsets_[b], s.wanted);
    }
    samples.push_back(s);
  }
  return samples;
}

void append(const StackSample& s, std::vector<std::int64_t>& message) {
  message.insert(message.end(), {s.owner, s.first, s.tokens, s.wanted, s.contexts, s.targets,
                                 std::bit_cast<std::int64_t>(s.scale)});
  for (const Numbers list : {s.names, s.query_time, s.key_time, s.wanted_names, s.wanted_time})
    append(list, message);
}

std::vector<StackSample> samples_in(Numbers message, const StackForm& form) {
  std::vector<StackSample> samples;
  const auto take = [&](std::int64_t count, bool is_there) {
    const auto n = static_cast<std::size_t>(is_there ? count : 0);
    require(n <= message.size(), "a message of samples ends {} numbers early", n - message.size());
    const Numbers list = message.first(n);
    message = message.subspan(n);
    return list;
  };
  while (!message.empty()) {
    const Numbers head = take(7, true);
    StackSample s{.owner = head[0], .first = head[1], .tokens = head[2], .wanted = head[3]};
    s.contexts = head[4], s.targets = head[5], s.scale = std::bit_cast<double>(head[6]);
    s.names = take(s.tokens, form.names);
    s.query_time = take(s.tokens, form.times), s.key_time = take(s.tokens, form.times);
    s.wanted_names = take(s.wanted, form.names && form.wants_some);
    s.wanted_time = take(s.wanted, form.times && form.wants_some);
    samples.push_back(s);
  }
  return samples;
}

void TokenLists::begin(const StackSample& s) {
  offsets_.push_back(offsets_.back() + s.tokens);
  wanted_offsets_.push_back(wanted_offsets_.back() + s.wanted);
  contexts_.push_back(static_cast<std::int32_t>(s.contexts));
  targets_.push_back(static_cast<std::int32_t>(s.targets));
  scales_.push_back(s.scale);
  append(s.query_time, query_time_), append(s.key_time, key_time_), append(s.wanted_time, wanted_time_);
}

void TokenLists::add_token(const StackSample& s, std::int64_t token) {
  if (!s.names.empty()) names_.push_back(s.names[static_cast<std::size_t>(token)]);
  if (s.wants(token)) {
    wanted_rows_.push_back(rows_);
    const auto i = static_cast<std::size_t>(token - s.tokens + s.wanted);
    if (!s.wanted_names.empty()) wanted_names_.push_back(s.wanted_names[i]);
  }
  ++rows_;
}

StackTokens TokenLists::tokens(StackTokens like, DType type, const Context& c) const {
  const StackForm form(like);
  StackRows &all = like.all, &wanted = like.wanted;
  all.offsets = on_device(offsets_, c);
  if (form.names) all.names = on_device(names_, c);
  if (form.times) all.query_time = on_device(query_time_, c), all.key_time = on_device(key_time_, c);
  if (form.wants_some) {
    wanted.rows = on_device(wanted_rows_, c), wanted.offsets = on_device(wanted_offsets_, c);
    if (form.names) wanted.names = on_device(wanted_names_, c);
    if (form.times) wanted.query_time = on_device(wanted_time_, c);
  } else {
    wanted = all;
  }
  like.mask.contexts = any_of(contexts_, c), like.mask.targets = any_of(targets_, c);
  set_scale(like, type, c);
  return like;
}

// The samples of each rank may have a factor of their own.
void TokenLists::set_scale(StackTokens& tokens, DType type, const Context& c) const {
  if (scales_.empty()) return;
  tokens.scale = scales_.front();
  if (std::ranges::count(scales_, scales_.front()) == std::ssize(scales_)) return;
  tokens.scale = 1;
  tokens.mask.sample_scale = type == DType::f64
                                 ? on_device(scales_, c)
                                 : on_device(std::vector<float>(scales_.begin(), scales_.end()), c);
}

}  // namespace hstu
