// What an evaluation asks of the users of a batch.
#pragma once

#include "hstu/batching/batch.h"
#include "hstu/dataset/dataset.h"
#include "hstu/objective/retrieval_objective.h"
#include "hstu/objective/retrieval_tally.h"

namespace hstu {

// Of a batch with the columns of retrieval_columns.h, whose samples are events of `dataset`. The user has had
// the items of `seen`, with `none` those of `history`: where lists leave nothing out, the others are still
// measured.
RetrievalQuestions retrieval_questions(const Batch& batch, const Dataset& dataset, SeenItems seen);

}  // namespace hstu
