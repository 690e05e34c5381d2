#include "hstu/objective/retrieval_questions.h"

#include "hstu/objective/retrieval_columns.h"

namespace hstu {

RetrievalQuestions retrieval_questions(const Batch& batch, const Dataset& dataset, SeenItems seen) {
  const auto user = batch.values<std::int64_t>(kUserColumn),
             position = batch.values<std::int64_t>(kPositionColumn),
             offsets = batch.values<std::int64_t>(retrieval::kOffsets),
             times = batch.values<std::int64_t>(retrieval::kKeyTime),
             items = batch.values<std::int64_t>(ids_column("item"));
  const auto index = batch.values<std::int32_t>(index_column("item"));
  RetrievalQuestions questions;
  questions.user.assign(user.begin(), user.end());
  questions.position.assign(position.begin(), position.end());
  questions.place.assign(batch.places.begin(), batch.places.end());
  questions.seen_offsets.push_back(0);
  for (std::size_t b = 0; b < position.size(); ++b) {
    const std::int64_t anchor = position[b], begin = offsets[b], end = offsets[b + 1];
    questions.target.push_back(dataset.item()[anchor]);
    questions.has_row.push_back(end > begin ? 1 : 0);
    const bool tied = end > begin && times[static_cast<std::size_t>(end - 1)] == dataset.time()[anchor];
    questions.tied.push_back(tied ? 1 : 0);
    if (seen == SeenItems::window) {
      for (std::int64_t t = begin; t < end; ++t)
        questions.seen.push_back(items[static_cast<std::size_t>(index[static_cast<std::size_t>(t)])]);
    } else {
      dataset.events_before(dataset.user_at(anchor), anchor).each([&](std::int64_t p) {
        questions.seen.push_back(dataset.item()[p]);
      });
    }
    questions.seen_offsets.push_back(std::ssize(questions.seen));
  }
  return questions;
}

}  // namespace hstu
