#include "hstu/events/file_verdict.h"

#include "hstu/base/error.h"

namespace hstu {

FileVerdict verdict_of(const std::string& file, const std::string& compared,
                       const std::function<void()>& check_it) {
  try {
    check_it();
    return {.file = file, .status = FileVerdict::Status::kOk, .remark = compared};
  } catch (const Error& error) {
    return {.file = file, .status = FileVerdict::Status::kDiffers, .remark = error.what()};
  }
}

}  // namespace hstu
