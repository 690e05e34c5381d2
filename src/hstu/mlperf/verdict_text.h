// Verdicts in words, as `hstu mlperf check` and the end of a run print them.
#pragma once

#include <string>

#include "hstu/base/files.h"
#include "hstu/mlperf/package_check.h"

namespace hstu {

struct LogReport {
  bool complies = false;
  std::string text;  // lines; the last one is "FILE: SUCCESS" or "FILE: FAILED"
};
LogReport report_on(const Path& log);

std::string text_of(const PackageVerdict& verdict);

}  // namespace hstu
