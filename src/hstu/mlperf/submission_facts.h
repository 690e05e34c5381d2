// What a configuration means for MLPerf: what is refused, and what the log says of the run.
#pragma once

#include <cstdint>

#include "hstu/mlperf/submission_log.h"
#include "hstu/options/options.h"

namespace hstu {

// Throws UsageError naming every value that the rules of options.submission forbid, with the value that they
// want. `ranks`: that share a batch.
void check_submission(const RunOptions& options, int ranks);

// Throws UsageError naming the submitter's names that are refused: they become names of folders.
void check_submitter(const SubmissionSection& submission);

// The header: global_batch_size before the rates, whose band depends on it. In a rehearsal the benchmark's
// own values.
SubmissionFacts submission_facts(const RunOptions& options, int ranks);

// The counts that the log has, and the grid of evaluations, for a dataset with these samples to train and to
// score. Error if the rules of 6.1 apply and the dataset is not the benchmark's.
SubmissionData submission_data(const RunOptions& options, std::int64_t train_samples,
                               std::int64_t evaluation_samples);

}  // namespace hstu
