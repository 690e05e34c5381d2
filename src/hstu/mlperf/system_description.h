// systems/SYSTEM.json of a submission: this machine, in the fields that the official checker wants.
#pragma once

#include <string>

#include "hstu/base/json.h"
#include "hstu/device/machine.h"
#include "hstu/options/submission_section.h"

namespace hstu {

inline constexpr const char* kSystemStatuses[] = {"Available on-premise", "Available cloud",
                                                  "Research, Development, or Internal (RDI)", "Preview"};

struct SystemWords {
  std::string organization, name, status;
  SubmissionDivision division = SubmissionDivision::closed;
  int nodes = 1;
};

// Every value is a text, as the official tools want; what a program cannot see (interconnects, cooling) is
// "".
Json system_description(const Machine& machine, const SystemWords& words);

}  // namespace hstu
