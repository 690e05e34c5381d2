// Which checkpoints of a run are whole, and which have only what changed in tables since a whole one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hstu/checkpoint/checkpoint.h"
#include "hstu/options/options.h"

namespace hstu {

// Interruptions do not change it: what they save has changes only, and is not counted. Where such a save had
// to be whole, because it was the first, the next one is whole too.
class BaseCadence {
 public:
  // `resumed`: the checkpoint that the run continues.
  BaseCadence(const CheckpointSection& options, const std::optional<Checkpoint>& resumed);

  // The base of the next save; empty: it must be whole. A base that is damaged or gone is none.
  std::optional<CheckpointBase> base_of(std::int64_t step, const std::string& reason) const;
  // Of the checkpoint at `path`, with the base that base_of() gave for it.
  void saved(const Path& path, const std::optional<CheckpointBase>& base);

 private:
  CheckpointSection options_;
  std::optional<CheckpointBase> last_;  // whole, and the saves since then
};

}  // namespace hstu
