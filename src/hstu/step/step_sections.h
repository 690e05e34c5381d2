// The sections of a training step: their times for the log, and their ranges in the context's trace.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "hstu/run/step_result.h"
#include "hstu/tensor/stage_timer.h"

namespace hstu {

inline constexpr std::string_view kLookupSection = "lookup";
inline constexpr std::string_view kForwardSection = "forward";
inline constexpr std::string_view kBackwardSection = "backward";
inline constexpr std::string_view kUpdateSection = "update";

// Stages that are not the model's (model/stages.h), inside the sections.
inline constexpr std::string_view kEmbeddingStage =
    "embedding";  // distinct ids, rows, their gradients and updates
inline constexpr std::string_view kOptimizerStage =
    "optimizer";  // of dense parameters: norm, clipping, update
inline constexpr std::string_view kPredictionsStage = "predictions";

class StepSections {
 public:
  // `is_timed`: the sections are measured too, whose marks on a GPU's stream cost a small model's step time.
  StepSections(const Context& context, bool is_timed);
  // Ends the last section if an error leaves the step inside it.
  ~StepSections() { leave(); }
  StepSections(const StepSections&) = delete;
  StepSections& operator=(const StepSections&) = delete;

  // Ends the section before, if any.
  void enter(std::string_view section);
  void leave();
  // Ends the last section. If they are timed, waits until its work is done.
  std::optional<StageTimes> times();

 private:
  std::unique_ptr<StageTimer> timer_;  // null: not timed
  Trace* trace_;                       // null: none
  bool inside_ = false;
};

}  // namespace hstu
