#include "hstu/plan/dry_step.h"

#include <memory>
#include <utility>
#include <vector>

#include "hstu/plan/assumed_group.h"
#include "hstu/step/launches.h"
#include "hstu/step/step.h"

namespace hstu {
namespace {

// The objective's catalogues, without values.
class DryCatalogues {
 public:
  DryCatalogues(const Model& model, const Objective& objective, const Context& of_rows,
                const std::vector<std::int64_t>& items)
      : model_(model), uses_(objective.catalogues()), of_rows_(of_rows), items_(items) {}

  std::vector<CatalogueRows> rows() {
    std::vector<CatalogueRows> all;
    for (const CatalogueUse& use : uses_) {
      CatalogueRows rows;
      rows.size = std::ssize(items_);
      rows.width = model_.embedding_dim();
      rows.ids = items_.data();
      rows.read = [](std::int64_t, Tensor&) {};
      if (!of_rows_.device().is_host()) rows.device_ids = Tensor::empty({rows.size}, DType::i64, of_rows_);
      if (use.has_gradient)
        rows.gradient = [this, size = rows.size] {
          if (!gradient_.defined())
            gradient_ = Tensor::empty({size, model_.embedding_dim()}, DType::f32, of_rows_);
          return gradient_;
        };
      all.push_back(std::move(rows));
    }
    return all;
  }

 private:
  const Model& model_;
  std::vector<CatalogueUse> uses_;
  Context of_rows_;
  const std::vector<std::int64_t>& items_;
  Tensor gradient_;
};

BatchRows dry_rows(const Model& model, const Batch& batch, const Context& of_rows) {
  BatchRows found;
  const std::vector<FeatureSpec> features = model.features();
  for (std::size_t f = 0; f < features.size(); ++f) {
    const Shape shape{batch.host_tensor(ids_column(features[f].name)).size(), model.row_width(f)};
    found.leaves.emplace_back(Tensor::empty(shape, DType::f32, of_rows));
  }
  return found;
}

class DryPasses : public PartPasses {
 public:
  DryPasses(const Model& model, const Objective& objective, const Context& compute, Context of_rows,
            PartSource& parts, std::vector<CatalogueRows> catalogues)
      : PartPasses(model, objective, compute, Draws(0, 0),
                   gradient_of_loss(model.parameters().all().front()->value.dtype()), parts,
                   std::move(catalogues)),
        model_(model),
        compute_(compute),
        of_rows_(std::move(of_rows)) {}

  void launch(const std::function<void()>& passes) override {
    passes();
    compute_.memory->dry()->end_group();
  }

 private:
  BatchRows look_up(const Batch& batch) override { return dry_rows(model_, batch, of_rows_); }
  void take_row_gradients(std::vector<Tensor> gradients) override {
    row_gradients_.push_back(std::move(gradients));
  }

  const Model& model_;
  Context compute_, of_rows_;
  std::vector<std::vector<Tensor>> row_gradients_;  // of each part, until the update
};

// Rows have a pool of their own on a GPU alone, as Learner's tables have.
struct DryContexts {
  AssumedRanks sharing_heads;
  Groups groups;
  Context compute, of_rows;

  DryContexts(const DryDevice& device, const Batch& batch, AttentionChoice attention, int tensor = 1)
      : sharing_heads(tensor),
        groups{.world = {}, .tensor = {sharing_heads}, .context = {}, .replicas = {}},
        compute(context(device, has_few_tokens(batch))),
        of_rows(device.is_host() ? compute : context(device, false)) {
    compute.attention = attention;
    if (tensor > 1) compute.groups = &groups;
  }
  DryContexts(const DryContexts&) = delete;
  DryContexts& operator=(const DryContexts&) = delete;
  std::int64_t peak() const {
    const std::int64_t peak = compute.memory->figures().peak;
    return compute.memory == of_rows.memory ? peak : peak + of_rows.memory->figures().peak;
  }

 private:
  static Context context(const DryDevice& device, bool in_groups) {
    return {.stream = Stream(), .memory = std::make_shared<DryMemoryPool>(device, in_groups)};
  }
};

}  // namespace

std::int64_t step_memory(const Model& model, const Objective& objective, const Batch& batch,
                         const DryDevice& device, std::int64_t parts, const std::vector<std::int64_t>& items,
                         AttentionChoice attention, int tensor, const Groups* groups) {
  DryContexts on(device, batch, attention, tensor);
  if (groups != nullptr) on.compute.groups = groups;
  PartsOf source([&]() -> const Batch* { return parts-- > 0 ? &batch : nullptr; });
  DryCatalogues catalogues(model, objective, on.of_rows, items);
  DryPasses passes(model, objective, on.compute, on.of_rows, source, catalogues.rows());
  pass_parts(passes);
  return on.peak();
}

std::int64_t outputs_memory(const Model& model, const Batch& batch, const DryDevice& device,
                            AttentionChoice attention) {
  const DryContexts on(device, batch, attention);
  const BatchRows rows = dry_rows(model, batch, on.of_rows);
  Tape tape(on.compute, false);
  model.forward(tape, batch, rows.leaves, Draws());
  return on.peak();
}

}  // namespace hstu
