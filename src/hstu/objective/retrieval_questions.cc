#include "hstu/objective/retrieval_questions.h"

#include "hstu/objective/retrieval_columns.h"

namespace hstu {

RetrievalQuestions retrieval_questions(const Batch& batch, const Dataset& dataset, SeenItems seen) {
  const auto user = batch.values<std::int64_t>(kUserColumn),
             position = batch.values<std::int64_t>(kPositionColumn),
             target = batch.values<std::int64_t>(retrieval::kTarget),
             offsets = batch.values<std::int64_t>(retrieval::kOffsets),
             times = batch.values<std::int64_t>(retrieval::kKeyTime),
             items = batch.values<std::int64_t>(ids_column("item"));
  const auto sample = batch.values<std::int32_t>(retrieval::kTargetSample),
             index = batch.values<std::int32_t>(index_column("item"));
  RetrievalQuestions questions;
  questions.target.assign(target.begin(), target.end());
  questions.excluded_offsets.push_back(0);
  for (const std::int32_t s : sample) {
    const auto b = static_cast<std::size_t>(s);
    const std::int64_t anchor = position[b];
    questions.user.push_back(user[b]);
    questions.position.push_back(anchor);
    const std::int64_t end = offsets[b + 1];
    const bool tied = end > offsets[b] && times[static_cast<std::size_t>(end - 1)] == dataset.time()[anchor];
    questions.tied.push_back(tied ? 1 : 0);
    if (!batch.places.empty()) questions.place.push_back(batch.places[b]);
    if (seen == SeenItems::history) {
      dataset.events_before(dataset.user_at(anchor), anchor).each([&](std::int64_t p) {
        questions.excluded.push_back(dataset.item()[p]);
      });
    } else if (seen == SeenItems::window) {
      for (std::int64_t t = offsets[b]; t < end; ++t)
        questions.excluded.push_back(items[static_cast<std::size_t>(index[static_cast<std::size_t>(t)])]);
    }
    questions.excluded_offsets.push_back(std::ssize(questions.excluded));
  }
  return questions;
}

}  // namespace hstu
