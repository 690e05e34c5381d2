#include "hstu/objective/item_vectors.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/batching/attribute_of_items.h"
#include "hstu/batching/batch_layout.h"
#include "hstu/loss/rank_rows.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/op.h"

namespace hstu {
namespace {

Tensor to_device(const Tensor& host, const Context& context) {
  return context.device().is_host() ? host : host.copy(context);
}

bool is_dry(const Context& context) {
  return context.memory->dry() != nullptr;
}

Variable with_terms(Tape& tape, const Variable& items, const std::vector<ops::GatherTerm>& terms) {
  return terms.empty() ? items : ops::add(tape, items, ops::gather_sum(tape, terms, {}));
}

// The rows of a catalogue as a variable, whose gradient goes to the catalogue's.
Variable raw_rows(const Pass& pass, const CatalogueRows& items) {
  const Context& context = pass.tape.context();
  const DType type = pass.rows[0].value().dtype();
  Tensor rows = Tensor::empty({items.size, items.width}, type, context);
  if (!is_dry(context)) items.read(0, rows);
  return pass.tape.record(rows, {pass.rows[0]}, [gradient = items.gradient, context, type](const Tensor& dy) {
    if (!gradient) return;
    ops::dispatch<ops::Operation::add>(context, type, [&]<typename T>(auto stream) {
      Tensor sum = gradient();
      kernels::pass_gradient(
          kernels::PassGradient<T>{
              .size = dy.size(), .dy = dy.data<T>(), .dx = {.to = sum.mutable_data<T>(), .accumulate = true}},
          stream);
    });
  });
}

// Of the numbers of all items, those of this rank's.
Tensor numbers_of(const CatalogueRows& items, const Batch& batch, const std::string& name,
                  const Context& context) {
  const std::string column = catalogue_index_column(name);
  if (items.places == nullptr) return batch.tensor(column);
  const auto all = batch.values<std::int32_t>(column);
  std::vector<std::int32_t> mine;
  for (std::int64_t i = 0; i < items.size; ++i)
    mine.push_back(all[static_cast<std::size_t>(items.places[i])]);
  return to_device(ops::row_index(mine), context);
}

// The rows of an attribute's ids, which the ranks share, and their order by id.
struct AttributeRows {
  Tensor rows;                                               // (A, E)
  std::vector<std::pair<std::int64_t, std::int32_t>> place;  // (A) of each id, ascending
};

AttributeRows rows_of_all_ranks(const CatalogueRows& ids, const Context& context) {
  Tensor mine = Tensor::empty({ids.size, ids.width}, DType::f32, context);
  ids.read(0, mine);
  const loss::RankRows ranks(context, ids.size);
  const std::vector<std::int64_t> list(ids.ids, ids.ids + ids.size);
  const Tensor all = ranks.gathered_ids(to_device(Tensor::from<std::int64_t>({ids.size}, list), context))
                         .to_host(context.stream);
  AttributeRows found{.rows = ranks.gathered(mine), .place = {}};
  for (std::int64_t i = 0; i < all.size(); ++i)
    found.place.emplace_back(all.data<std::int64_t>()[i], static_cast<std::int32_t>(i));
  std::sort(found.place.begin(), found.place.end());
  return found;
}

ops::GatherTerm term_of(const AttributeRows& attribute, const AttributeOfItems& values,
                        const CatalogueRows& items, const Context& context) {
  std::vector<std::int32_t> numbers;
  for (std::int64_t i = 0; i < items.size; ++i) {
    const std::int64_t id = values.of(items.ids[i]);
    const auto found = std::lower_bound(attribute.place.begin(), attribute.place.end(), std::pair(id, 0));
    const bool has_row = found != attribute.place.end() && found->first == id;  // else outside of its table
    numbers.push_back(has_row ? found->second : -1);
  }
  return {Variable::constant(attribute.rows), to_device(ops::row_index(numbers), context)};
}

}  // namespace

Variable item_vectors(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                      std::span<const ItemFeature> attributes) {
  std::vector<ops::GatherTerm> terms;
  for (std::size_t a = 0; a < attributes.size(); ++a)
    terms.push_back({rows[1 + a], batch.tensor(index_column(attributes[a].name))});
  return with_terms(tape, rows[0], terms);
}

Variable vectors_of_catalogue(const Pass& pass, std::span<const ItemFeature> attributes) {
  const CatalogueRows& items = pass.catalogues[0];
  std::vector<ops::GatherTerm> terms;
  for (std::size_t a = 0; a < attributes.size(); ++a)
    terms.push_back(
        {pass.rows[1 + a], numbers_of(items, pass.batch, attributes[a].name, pass.tape.context())});
  return with_terms(pass.tape, raw_rows(pass, items), terms);
}

CatalogueRows with_attributes(const EvaluationSource& source, std::span<const ItemFeature> attributes) {
  CatalogueRows items = source.catalogues.front();
  if (attributes.empty()) return items;
  require(source.catalogues.size() == 1 + attributes.size() && source.dataset != nullptr,
          "expected the dataset and the catalogues of {} attributes", attributes.size());
  const Context& context = source.compute;
  std::vector<ops::GatherTerm> terms;
  for (std::size_t a = 0; a < attributes.size(); ++a)
    terms.push_back(term_of(rows_of_all_ranks(source.catalogues[1 + a], context),
                            AttributeOfItems(*source.dataset, attributes[a].key), items, context));
  Tensor rows = Tensor::empty({items.size, items.width}, DType::f32, context);
  items.read(0, rows);
  Tape forward(context, false);
  const Tensor vectors = with_terms(forward, Variable::constant(rows), terms).value();
  items.read = [vectors, context](std::int64_t first, Tensor& block) {
    block.copy_from(vectors.row_range(first, first + block.rows()), context.stream);
  };
  return items;
}

}  // namespace hstu
