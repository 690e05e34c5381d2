#include "hstu/options/make_task.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/model/projected_tables.h"
#include "hstu/objective/objective.h"
#include "hstu/task/kind.h"

namespace hstu {
namespace {

// Rows of other widths than the model's come through projections; but a loss or a rank over a catalogue reads
// the rows themselves.
std::unique_ptr<Model> with_widths(std::unique_ptr<Model> model, const Objective& objective,
                                   const TablesSection& tables) {
  const std::vector<FeatureSpec> features = model->features();
  const std::vector<CatalogueUse> catalogues = objective.catalogues();
  std::vector<std::int64_t> widths(features.size(), model->embedding_dim());
  for (std::size_t f = 0; f < features.size(); ++f) {
    const auto section = tables.by_name.find(features[f].name);
    if (section == tables.by_name.end() || section->second.width == 0) continue;
    widths[f] = section->second.width;
    const bool is_read = std::any_of(catalogues.begin(), catalogues.end(), [f](const CatalogueUse& use) {
      return use.feature == f && use.attribute.empty();
    });
    if (is_read && widths[f] != model->embedding_dim())
      fail_usage(
          "tables.{0}.width = {1}: this model compares its vectors with the rows of table {0}, which have "
          "its "
          "width: set model.embedding_dim = {1}, or leave tables.{0}.width out",
          features[f].name, widths[f]);
  }
  const bool all_fit = std::all_of(widths.begin(), widths.end(),
                                   [&](std::int64_t width) { return width == model->embedding_dim(); });
  if (all_fit) return model;
  return std::make_unique<ProjectedTables>(std::move(model), std::move(widths));
}

}  // namespace

Task make_task(const RunOptions& options, const DatasetFacts& facts) {
  Task task = options.model.kind().make(task_request(options), facts);
  task.model = with_widths(std::move(task.model), *task.objective, options.tables);
  task.evaluation.negatives = options.evaluation.negatives;
  task.evaluation.negatives.exclude_seen = options.data.options.negatives.exclude_seen;
  for (DataOptions* const data : {&task.data, &task.evaluation})
    data->negatives_share_history = task.model->shares_histories();
  return task;
}

}  // namespace hstu
