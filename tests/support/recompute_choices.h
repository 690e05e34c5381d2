// Every choice of what the backward pass computes once more.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hstu/model/recompute.h"

namespace hstu::testing {

// The first computes nothing again.
inline std::vector<Recompute> recompute_choices() {
  std::vector<Recompute> choices;
  for (const bool norm : {false, true})
    for (const bool silu : {false, true})
      for (const bool gate : {false, true})
        for (const bool layer : {false, true}) choices.push_back({norm, silu, gate, layer});
  return choices;
}

// For messages.
inline std::string to_string(const Recompute& r) {
  std::string words = "recomputed:";
  for (const auto& [name, chosen] :
       {std::pair(" norm", r.norm), {" silu", r.silu}, {" gate", r.gate}, {" layer", r.layer}})
    if (chosen) words += name;
  return words;
}

}  // namespace hstu::testing
