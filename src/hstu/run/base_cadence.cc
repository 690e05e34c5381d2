#include "hstu/run/base_cadence.h"

#include <filesystem>
#include <system_error>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr const char* kInterruption = "interrupted";

bool still_exists(const CheckpointLayer& layer) {
  try {
    std::error_code error;
    for (const auto& [name, file] : layer.manifest.files)
      if (std::filesystem::file_size(layer.path / name, error) != file.bytes || error) return false;
    return read_checkpoint_manifest(layer.path).checksum == layer.manifest.checksum;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

BaseCadence::BaseCadence(const CheckpointSection& options, const std::optional<Checkpoint>& resumed)
    : options_(options) {
  if (!resumed) return;
  const CheckpointLayer* const base = resumed->base();
  last_ = {base != nullptr ? *base : resumed->layer(),
           base != nullptr ? resumed->manifest().base->increments : 0};
}

std::optional<CheckpointBase> BaseCadence::base_of(std::int64_t step, const std::string& reason) const {
  if (!options_.incremental || !last_ || last_->layer.manifest.step == step) return std::nullopt;
  CheckpointBase base = *last_;
  if (reason != kInterruption) {
    ++base.increments;
    if (base.increments >= options_.full_every) return std::nullopt;
    if (base.layer.manifest.state.value("reason", "") == kInterruption) return std::nullopt;
  }
  if (!still_exists(base.layer)) return std::nullopt;
  return base;
}

void BaseCadence::saved(const Path& path, const std::optional<CheckpointBase>& base) {
  if (base)
    last_ = base;
  else if (options_.incremental)
    last_ = {{path, read_checkpoint_manifest(path)}, 0};
}

}  // namespace hstu
