// The losses of models that predict the next item of a catalogue.
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"
#include "hstu/batching/options.h"

namespace hstu {

enum class RetrievalLossKind {
  full,     // softmax over all items
  uniform,  // over the target and items that are drawn for each position, all alike
  // The same, drawn from the different targets of the batch of all ranks (RetrievalGR of NVIDIA's
  // recsys-examples).
  batch_uniform,
  in_batch,  // over the targets of the batch, corrected by how often they are there
  mixed,     // over those and items that are drawn, corrected in the same way
  gbce,      // binary cross-entropy against drawn items, calibrated (gSASRec)
};
inline constexpr Choice<RetrievalLossKind> kRetrievalLosses[] = {
    {"full", RetrievalLossKind::full},
    {"uniform", RetrievalLossKind::uniform},
    {"batch_uniform", RetrievalLossKind::batch_uniform},
    {"in_batch", RetrievalLossKind::in_batch},
    {"mixed", RetrievalLossKind::mixed},
    {"gbce", RetrievalLossKind::gbce}};

struct RetrievalLoss {
  RetrievalLossKind kind = RetrievalLossKind::full;
  double temperature = 0.05;     // that products of vectors are divided by
  std::int64_t negatives = 128;  // items that are drawn; not of full and in_batch
  double calibration = 0.75;     // t of gbce: 0: as binary cross-entropy, 1: calibrated probabilities

  // Over the targets of the batch, and what is drawn for all of it.
  bool has_pool() const { return kind == RetrievalLossKind::in_batch || kind == RetrievalLossKind::mixed; }
  CatalogueDrawOptions drawn() const {
    const bool of_batch = kind == RetrievalLossKind::batch_uniform;
    const bool own = kind == RetrievalLossKind::uniform || of_batch || kind == RetrievalLossKind::gbce;
    return {.own = own ? negatives : 0,
            .of_batch = of_batch,
            .shared = kind == RetrievalLossKind::mixed ? negatives : 0,
            .frequencies = has_pool()};
  }
};

}  // namespace hstu
