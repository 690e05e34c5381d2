#include "hstu/run/bad_id_warning.h"

#include "hstu/base/text.h"

namespace hstu {

std::string bad_id_warning(const std::vector<BadIds::Feature>& training, const EvaluationResult* evaluation) {
  std::vector<std::vector<std::string>> rows{
      {"feature", "rows of its table", "training", "last evaluation", "first"}};
  for (const BadIds::Feature& feature : training) {
    std::int64_t evaluated = 0;
    if (evaluation != nullptr) {
      const auto found = evaluation->bad_ids.find(feature.name);
      if (found != evaluation->bad_ids.end()) evaluated = found->second;
    }
    if (feature.count == 0 && evaluated == 0) continue;
    rows.push_back(
        {feature.name, with_separators(feature.rows), with_separators(feature.count),
         with_separators(evaluated),
         feature.count > 0 ? fmt::format("{} in {}", feature.first_id, feature.first_sample) : "-"});
  }
  if (rows.size() == 1) return "";
  return fmt::format(
      "WARNING: ids outside their tables were read as zeros, so the model learnt nothing of them:\n{}"
      "Give these tables more rows (features.item_rows, rows of features.attributes and features.context; 0: "
      "as "
      "many as the dataset's ids ask for), give items without codes (code) theirs by hstu tokenize --append, "
      "or "
      "correct the data; no table holds an id below 0. ids.on_bad = "
      "\"error\" stops at the first such id.\n",
      table(rows));
}

}  // namespace hstu
