#include "hstu/optimizer/update_check.h"

#include "hstu/device/pinned_memory.h"

namespace hstu {
namespace {

std::shared_ptr<UpdateFacts> new_facts(Device device, std::size_t count) {
  auto* const memory = transfer_memory(device);
  const std::size_t bytes = count * sizeof(UpdateFacts);
  return {new (memory->allocate(bytes)) UpdateFacts[count]{},
          [memory, bytes](UpdateFacts* facts) { memory->deallocate(facts, bytes); }};
}

}  // namespace

UpdateCheck::UpdateCheck(const Context& context)
    : context_(context),
      factor_(Tensor::from<float>({1}, {1}).copy(context)),
      facts_(new_facts(context.device(), kOutcomes)) {}

UpdateOutcome UpdateCheck::judge(const GradientSquares& squares, const Tensor& loss, double max_norm) {
  UpdateFacts* const facts = facts_.get() + turn_++ % kOutcomes;
  cuda::judge_update({.sums = squares.sums().data<double>(),
                      .parameters = squares.parameters(),
                      .count = squares.sums().size(),
                      .loss = loss.data<float>(),
                      .max_norm = max_norm,
                      .factor = factor_.mutable_data<float>(),
                      .facts = facts},
                     context_.cuda());
  Event known(context_.device());
  known.record_later(context_.stream);
  return {facts, std::move(known)};
}

void UpdateCheck::reset() {
  factor_.copy_from(Tensor::from<float>({1}, {1}), context_.stream);
}

}  // namespace hstu
