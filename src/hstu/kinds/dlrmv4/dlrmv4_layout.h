// The sources of the tokens of a DLRMv4 batch: sample b is [contextual tokens, history, candidates]. Several
// candidates, of a request or an anchor with its negatives, do not see each other, and each has the place and
// the time of one. Alphabet: B samples, C contextual tokens per sample, T tokens, N candidates and I distinct
// items in total.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "hstu/batching/batch_layout.h"
#include "hstu/kinds/dlrmv4/dlrmv4_config.h"
#include "hstu/tensor/dtype.h"

namespace hstu {

// Columns in addition to those of every batch and of the features. The item's index is (T): the row of the
// distinct items for each token, -1 for contextual tokens.
namespace dlrmv4 {
inline constexpr std::string_view kOffsets = kTokenOffsetsColumn;
inline constexpr std::string_view kTokenName = "token.name";     // (T) i64, token_name()
inline constexpr std::string_view kContext = "token.context";    // (T) i32, c * B + b, -1 elsewhere
inline constexpr std::string_view kAction = "token.action";      // (T) i32, row of kActions; n: a candidate
inline constexpr std::string_view kPosition = "token.position";  // (T) i32, row of the position table
inline constexpr std::string_view kTimeBucket = "token.time_bucket";  // (T) i32, row of the time table
inline constexpr std::string_view kActions = "actions";               // (n) u8, distinct masks, ascending
inline constexpr std::string_view kCandidate = "candidate.token";     // (N) i32, the candidate's token
inline constexpr std::string_view kCandidateName = "candidate.name";  // (N) i64, token_name() of that token
inline constexpr std::string_view kCandidateOffsets = "candidate.offsets";  // (B + 1) i64: those of sample b
inline constexpr std::string_view kCandidateItem = "candidate.item";    // (N) i32, row of the distinct items
inline constexpr std::string_view kCandidateLabel = "candidate.label";  // (N) f32, 0 or 1
// (N) f32 factor of its loss: 1, or the weight of its sample's event.
inline constexpr std::string_view kCandidateWeight = "candidate.weight";
inline constexpr std::string_view kTargets = "candidate.count";  // (B) i32, only if a sample has several
inline constexpr std::string_view kClock = "candidate.clock";  // (N, 4), clock_features() in the model's type
}  // namespace dlrmv4

class Dlrmv4Layout final : public BatchLayout {
 public:
  // `type`: f32 or f64, of the model's parameters.
  Dlrmv4Layout(const Dlrmv4Config& config, SampleFeatures features, DType type = DType::f32)
      : config_(config), features_(std::move(features)), type_(type) {}

  const SampleFeatures& features() const { return features_; }
  void lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const override;

 private:
  void add_tokens(const Samples& samples, Batch& batch) const;
  void add_candidates(const Samples& samples, Batch& batch) const;
  std::int64_t query_time(const Samples& samples, std::size_t sample) const;

  Dlrmv4Config config_;
  SampleFeatures features_;
  DType type_;
};

// Whether a sample of the batch has several candidates.
bool has_shared_histories(const Batch& batch);

// "candidate.NAME": (N) i32, the row of an attribute's distinct ids for each candidate.
std::string candidate_column(std::string_view attribute);

// Position of token n of a sample of `length` tokens, `context` of them contextual: contextual tokens 0 .. C
// - 1, the candidate C, then upwards into the past. All older tokens share the last row.
std::int32_t position_row(std::int64_t n, std::int64_t length, std::int64_t context, std::int64_t positions);

// trunc(sqrt(minutes)) from a token to the query, clamped to [0, buckets]; 0 for a later token.
std::int32_t time_bucket_row(std::int64_t query_time, std::int64_t time, std::int64_t buckets);

// cos and sin of the hour of the day, then of the day of the week.
std::array<double, 4> clock_features(std::int64_t time, double circle_constant);

// FLOPs of the layers' forward pass for one sequence: matrix products of each token, and attention's pairs.
std::int64_t sequence_work(std::int64_t length, const Dlrmv4Config& config);

}  // namespace hstu
