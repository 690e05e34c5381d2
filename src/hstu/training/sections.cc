#include "hstu/training/sections.h"

#include <utility>

#include "hstu/embedding/table_section.h"
#include "hstu/optimizer/optimizer_section.h"

namespace hstu {

std::vector<Section> sections(Learner& learner) {
  std::vector<Section> all{parameters_section(learner.model.parameters().all()),
                           optimizer_section(learner.dense_optimizer)};
  for (Section& table : table_sections(learner.embeddings.tables())) all.push_back(std::move(table));
  all.push_back(bad_ids_section(learner.embeddings.bad_ids()));
  return all;
}

}  // namespace hstu
