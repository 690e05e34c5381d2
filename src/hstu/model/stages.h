// The names of a model's stages, for tapes (StageRange), tables of benchmarks and traces.
#pragma once

#include <string_view>

namespace hstu {

// Of an HSTU layer.
inline constexpr std::string_view kNormUvqkStage = "norm_uvqk";  // norm, projection to U, V, Q, K, activation
inline constexpr std::string_view kAttentionStage = "attention";
inline constexpr std::string_view kGateStage = "gate";              // norm of the attention, gate, dropout
inline constexpr std::string_view kProjectionStage = "projection";  // and the residual

inline constexpr std::string_view kPreprocessorStage = "preprocessor";  // from table rows to the tokens
inline constexpr std::string_view kHeadStage = "head";                  // from the last layer to the logits
inline constexpr std::string_view kLossStage = "loss";

}  // namespace hstu
