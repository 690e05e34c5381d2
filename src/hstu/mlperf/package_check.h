// The verdict of the official package checker on the logs of one system: ten that comply, with seeds of their
// own, that converge as the reference does.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

inline constexpr std::size_t kRunsOfPackage = 10;

struct PackageVerdict {
  std::vector<std::string> errors, notes;
  std::optional<double> minutes;  // the score: mean time to the target of all runs but two, with the factor
  std::optional<double> factor;

  bool passes() const { return errors.empty(); }
};

// `closed`: seeds and convergence are checked too.
PackageVerdict check_package_logs(std::span<const Path> logs, bool closed);

}  // namespace hstu
