#include "hstu/score/scorer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/device/pinned_memory.h"

namespace hstu {
namespace {

std::vector<std::int64_t> ids_of(const EmbeddingTable& table) {
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(table.rows_alive()));
  for (const auto& place : table.places_by_id()) ids.push_back(place.id);
  return ids;
}

const RankingObjective& ranking_of(const Learner& learner) {
  const RankingObjective* const ranking = learner.objective->ranking();
  if (ranking == nullptr) fail_usage("a model of this kind does not score candidates");
  return *ranking;
}

}  // namespace

Scorer::Scorer(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset, Task task,
               bool row_stable)
    : pass_(options, checkpoint, dataset, std::move(task), row_stable),
      downloads_(transfer_memory(pass_.learner().compute.device())),
      tasks_(ranking_of(pass_.learner()).tasks()),
      bad_ids_(OnBadId::count, pass_.learner().model->features()),
      trained_items_(ids_of(pass_.learner().tables[0])) {}

Scorer::Begun Scorer::begin(std::span<const Candidate> candidates) {
  const Tensor outputs = pass_.outputs(candidates);
  bad_ids_.add(pass_.batch().bad_ids);
  const Context& compute = pass_.learner().compute;
  Begun begun{.logits = outputs,
              .computed = Event(compute.device()),
              .examples = ranking_of(pass_.learner()).examples(pass_.batch())};
  const std::size_t items = pass_.built().candidate_item.size();
  require(begun.examples.user.size() == items, "expected {} scores, found {}", items,
          begun.examples.user.size());
  if (compute.device().is_host() || !outputs.defined()) return begun;
  const std::size_t bytes = outputs.bytes();
  const std::shared_ptr<void> memory(downloads_.allocate(bytes),
                                     [this, bytes](void* data) { downloads_.deallocate(data, bytes); });
  copy_bytes(memory.get(), outputs.raw(), bytes, compute.stream);
  begun.computed.record(compute.stream);
  begun.logits = Tensor::view(outputs.shape(), outputs.dtype(), memory.get(), memory);
  return begun;
}

std::vector<float> Scorer::finish(const Begun& begun) {
  begun.computed.synchronize();
  return ranking_of(pass_.learner())
      .probabilities(begun.logits, begun.examples, Stream(), tasks_.size(), "request");
}

bool Scorer::is_trained(std::int64_t item) const {
  return pass_.learner().tables[0].contains(item);
}

}  // namespace hstu
