// Vectors of items that have attributes: the item's row, and the rows of its attributes added to it.
// Alphabet: I distinct items of a batch, V items of this rank's catalogue, A distinct ids of an attribute, E.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/loss/catalogue_rows.h"
#include "hstu/objective/objective.h"
#include "hstu/objective/pass.h"

namespace hstu {

// An attribute of items as a feature of a model, which has its table.
struct ItemFeature {
  std::string name;
  std::string key;  // batching/attribute_of_items.h
};

// (I, E) of the batch's items. rows: of the item, then of each attribute, in the model's width.
Variable item_vectors(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                      std::span<const ItemFeature> attributes);

// (V, E) of the items of pass.catalogues[0], whose batch has the ids of all items (catalogue_index_column).
// Gradients reach that catalogue's, and those of pass.rows.
Variable vectors_of_catalogue(const Pass& pass, std::span<const ItemFeature> attributes);

// The catalogue of items, source.catalogues[0], as vectors that are computed once: V * E numbers. The other
// catalogues have the attributes' ids. All ranks of the context's world call it together.
CatalogueRows with_attributes(const EvaluationSource& source, std::span<const ItemFeature> attributes);

}  // namespace hstu
