// What verifying one file of prepared data found.
#pragma once

#include <functional>
#include <string>

namespace hstu {

struct FileVerdict {
  enum class Status { kOk, kDiffers, kMissing };
  std::string file;
  Status status = Status::kOk;
  std::string remark;  // what was compared, or what differs
};

// kOk with `compared` as the remark, or kDiffers with the message of the Error that `check_it` throws.
FileVerdict verdict_of(const std::string& file, const std::string& compared,
                       const std::function<void()>& check_it);

}  // namespace hstu
