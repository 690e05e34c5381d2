// The result of verifying one file of prepared data.
#pragma once

#include <functional>
#include <string>

#include "hstu/base/choice.h"

namespace hstu {

struct FileVerdict {
  enum class Status { kOk, kDiffers, kMissing };
  static constexpr Choice<Status> kStatuses[] = {
      {"OK", Status::kOk}, {"differs", Status::kDiffers}, {"missing", Status::kMissing}};
  std::string file;
  Status status = Status::kOk;
  std::string remark;  // what was compared, or the difference
};

// kOk with `compared` as the remark, or kDiffers with the message of the Error that `check_it` throws.
FileVerdict verdict_of(const std::string& file, const std::string& compared,
                       const std::function<void()>& check_it);

}  // namespace hstu
