// The samples of a pass over layers on the host: from the lists of a batch to messages between ranks, and to
// the lists of a pass over other samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/model/hstu_stack.h"

namespace hstu {

// (n), on the context's device.
template <typename Number>
Tensor on_device(const std::vector<Number>& list, const Context& context) {
  return Tensor::from({std::ssize(list)}, list).copy(context);
}

// Which lists the samples of a pass have: the same on all ranks.
struct StackForm {
  bool names, times, wants_some;

  explicit StackForm(const StackTokens& tokens);
};

// A sample and its part of each list, which has no number where the pass does not have the list.
struct StackSample {
  using Numbers = std::span<const std::int64_t>;

  std::int64_t owner = 0;  // the rank whose batch it is in
  std::int64_t first = 0;  // its first row there
  std::int64_t tokens = 0, wanted = 0, contexts = 0, targets = 0;
  double scale = 1;
  Numbers names = {}, query_time = {}, key_time = {};  // (tokens)
  Numbers wanted_names = {}, wanted_time = {};         // (wanted)

  bool wants(std::int64_t token) const { return token >= tokens - wanted; }
};

// The tokens of the longest sample; 0 without samples. Waits for the device.
std::int64_t longest_sample(const StackTokens& tokens, const Context& context);

// Those of a rank's batch.
class SamplesOfBatch {
 public:
  // Copies the lists to the host, and waits for the device.
  SamplesOfBatch(const StackTokens& tokens, const Context& context);

  std::vector<StackSample> all(std::int64_t owner) const;  // refer to this

 private:
  std::vector<std::int64_t> offsets_, names_, query_time_, key_time_;
  std::vector<std::int64_t> wanted_offsets_, wanted_names_, wanted_time_;
  std::vector<std::int32_t> contexts_, targets_;
  double scale_;
};

void append(const StackSample& sample, std::vector<std::int64_t>& message);
// Those that were appended; they refer to the message.
std::vector<StackSample> samples_in(std::span<const std::int64_t> message, const StackForm& form);

// The lists of some samples, of which this rank has some tokens.
class TokenLists {
 public:
  // has(token): whether this rank has it.
  template <typename Has>
  void add(const StackSample& sample, const Has& has) {
    begin(sample);
    for (std::int64_t t = 0; t < sample.tokens; ++t)
      if (has(t)) add_token(sample, t);
  }

  // A pass over these samples: `like` in all but the lists. For tokens of `type`, on the context's device.
  StackTokens tokens(StackTokens like, DType type, const Context& context) const;

 private:
  void begin(const StackSample& sample);
  void add_token(const StackSample& sample, std::int64_t token);
  void set_scale(StackTokens& tokens, DType type, const Context& context) const;

  std::int32_t rows_ = 0;  // that this rank has
  std::vector<std::int64_t> offsets_{0}, wanted_offsets_{0}, names_, wanted_names_;
  std::vector<std::int64_t> query_time_, key_time_, wanted_time_;
  std::vector<std::int32_t> contexts_, targets_, wanted_rows_;
  std::vector<double> scales_;
};

}  // namespace hstu
