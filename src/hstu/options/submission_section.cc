#include "hstu/options/submission_section.h"

namespace hstu {

void describe(ConfigFields& f, SubmissionSection& o) {
  f.field("organization", o.organization, "the submitter");
  f.field("platform", o.platform, "the system, by the name that the folder of results will have");
  f.choice("division", o.division, kSubmissionDivisions, "of MLPerf: which values it forbids");
  f.choice(
      "rules", o.rules, kSubmissionRules,
      "6.1: refuse what the division forbids; stand_in: counts of this dataset, for tests; rehearsal: the "
      "log has the benchmark's values, whatever the run computes; neither is a result");
  f.field("caches_cleared", o.caches_cleared, "the machine's file caches were empty when the run began");
}

}  // namespace hstu
