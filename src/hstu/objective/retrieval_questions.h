// What an evaluation asks of the users of a batch.
#pragma once

#include "hstu/batching/batch.h"
#include "hstu/dataset/dataset.h"
#include "hstu/objective/retrieval_objective.h"
#include "hstu/objective/retrieval_tally.h"

namespace hstu {

// Of a batch with the columns of retrieval_columns.h, whose samples are events of `dataset`. A user's
// excluded items are those of `seen`, of which a target that repeats an earlier item is one; it counts all
// the same (RetrievalQuestions).
RetrievalQuestions retrieval_questions(const Batch& batch, const Dataset& dataset, SeenItems seen);

}  // namespace hstu
