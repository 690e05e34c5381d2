// What the log of a submission to MLPerf Training says of its submitter, and which rules it obeys.
#pragma once

#include <string>

#include "hstu/config/config.h"

namespace hstu {

enum class SubmissionDivision { closed, open };
inline constexpr Choice<SubmissionDivision> kSubmissionDivisions[] = {{"closed", SubmissionDivision::closed},
                                                                      {"open", SubmissionDivision::open}};

enum class SubmissionRules {
  v6_1,
  stand_in,   // the counts of this run's data take the place of the benchmark's
  rehearsal,  // a step counts as one of the benchmark's (mlperf/grid.h), whatever it computes
};
inline constexpr Choice<SubmissionRules> kSubmissionRules[] = {{"6.1", SubmissionRules::v6_1},
                                                               {"stand_in", SubmissionRules::stand_in},
                                                               {"rehearsal", SubmissionRules::rehearsal}};

struct SubmissionSection {
  std::string organization, platform;
  SubmissionDivision division = SubmissionDivision::closed;
  SubmissionRules rules = SubmissionRules::v6_1;
  bool caches_cleared = false;
};

void describe(ConfigFields& fields, SubmissionSection& options);

}  // namespace hstu
