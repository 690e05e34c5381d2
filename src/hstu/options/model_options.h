// The keys of section [model], which depend on model.kind.
#pragma once

#include "hstu/config/config.h"
#include "hstu/model/dlrmv4_config.h"
#include "hstu/model/ranking_gr_config.h"

namespace hstu {

void describe(ConfigFields& fields, Dlrmv4Config& options);
void describe(ConfigFields& fields, RankingGrConfig& options);

}  // namespace hstu
