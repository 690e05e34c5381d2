#include <algorithm>
#include <numeric>
#include <utility>

#include "hstu/kinds/semantic_ids/semantic_ids.h"
#include "hstu/ops/history_keys.h"

namespace hstu {
namespace {

using namespace semantic_ids;

std::vector<std::int64_t> counted(std::int64_t n) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), std::int64_t{0});
  return values;
}

}  // namespace

// One search for all samples of a batch that have a history.
struct SemanticIds::Search {
  Search(const SemanticIds& of, Tape& on, const Batch& batch, const Variable& table)
      : model(of), tape(on), rows(table), levels(of.codes_->levels()) {
    const auto offsets = batch.values<std::int64_t>(retrieval::kOffsets);
    const auto codes = batch.values<std::int32_t>(kEventCodes);
    for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
      if (offsets[b] == offsets[b + 1]) continue;
      items.push_back(offsets[b + 1] - offsets[b]);
      for (std::int64_t j = 0; j < items.back(); ++j)
        for (std::int64_t h = 0; h < levels; ++h)
          add(codes[static_cast<std::size_t>((offsets[b] + j) * levels + h)], -1, j * (levels + 1) + h);
      add(-1, 0, items.back() * (levels + 1) - 1);
      first_token.push_back(std::ssize(code));
    }
  }

  // A list on the device of the pass.
  template <typename T>
  Tensor list(const std::vector<T>& values) const {
    return Tensor::from<T>({std::ssize(values)}, values).copy(tape.context());
  }

  void add(std::int32_t row, std::int32_t is_bos, std::int64_t at) {
    code.push_back(row), bos.push_back(is_bos), place.push_back(static_cast<std::int32_t>(at));
  }

  // (n, codes of the level) of the tokens that were added, of which the last of each sample is wanted.
  Variable next_logits(const std::vector<std::int64_t>& offsets, HistoryKeys& keys, std::int64_t level) {
    Tokens tokens{.code = list(code), .bos = list(bos), .at = {}};
    tokens.at.positions = list(place);
    tokens.at.all = {.rows = {}, .offsets = list(offsets), .names = {}};
    std::vector<std::int32_t> last, places;
    for (std::size_t s = 1; s < offsets.size(); ++s) {
      last.push_back(static_cast<std::int32_t>(offsets[s] - 1));
      places.push_back(place[static_cast<std::size_t>(offsets[s] - 1)]);
    }
    tokens.at.wanted = {.rows = list(last), .offsets = list(counted(std::ssize(offsets))), .names = {}};
    tokens.at.wanted_positions = list(places);
    keys.keep(kept, std::ssize(code), tape.context());
    const Variable x =
        model.encode(tape, rows, tokens, Draws(), {.mask = {}, .contexts = {}, .targets = {}, .keys = &keys});
    kept += std::ssize(code);
    code.clear(), bos.clear(), place.clear();
    return model.logits(tape, model.normed(tape, x), level);
  }

  // The tokens of the latest codes, one for each prefix, behind the history and the codes before them: the
  // rows of these in the keys are what a prefix hands on to those that extend it.
  void add_prefixes(const Beams& beams, std::int64_t level, HistoryKeys& keys) {
    std::vector<std::vector<std::int32_t>> inherited(static_cast<std::size_t>(beams.size()));
    std::vector<std::int32_t> pages;
    std::vector<std::int64_t> page_offsets{0}, lengths;
    std::size_t b = 0;
    for (std::size_t u = 0; u < items.size(); ++u) {
      for (; std::cmp_less(b, beams.offsets[u + 1]); ++b) {
        add(static_cast<std::int32_t>(model.codes_->first_row(level - 1) + beams.code[b]), -1,
            items[u] * (levels + 1) + level - 1);
        if (level > 1) inherited[b] = ancestors[static_cast<std::size_t>(beams.parent[b])];
        for (std::int64_t t = first_token[u]; t < first_token[u + 1]; ++t)
          pages.push_back(static_cast<std::int32_t>(t));
        pages.insert(pages.end(), inherited[b].begin(), inherited[b].end());
        page_offsets.push_back(std::ssize(pages));
        lengths.push_back(page_offsets[b + 1] - page_offsets[b]);
        inherited[b].push_back(static_cast<std::int32_t>(kept + static_cast<std::int64_t>(b)));
      }
    }
    ancestors = std::move(inherited);
    std::vector<std::int32_t> own(b);
    std::iota(own.begin(), own.end(), 0);
    keys.past = {.k = {},
                 .v = {},
                 .page_tokens = 1,
                 .pages = list(pages),
                 .page_offsets = list(page_offsets),
                 .lengths = list(lengths),
                 .past_of = list(own),
                 .time = {}};
  }

  Beams run() {
    const std::int64_t users = std::ssize(items);
    Beams beams = first_beams(*model.trie_, users);
    if (users == 0) return beams;
    const Shape shape{std::ssize(code) + (levels - 1) * users * model.config_.beam,
                      model.config_.heads * model.config_.head_dim};
    HistoryKeys keys;
    for (std::int64_t l = 0; l < model.config_.layers; ++l)
      keys.layers.push_back({Tensor::empty(shape, rows.value().dtype(), tape.context()),
                             Tensor::empty(shape, rows.value().dtype(), tape.context())});
    for (std::int64_t level = 0; level < levels; ++level) {
      if (level > 0) add_prefixes(beams, level, keys);
      const Tensor z = next_logits(level == 0 ? first_token : counted(beams.size() + 1), keys, level)
                           .value()
                           .to_host(tape.context().stream);
      beams = extend(*model.trie_, beams, level, z.data<float>(), z.cols(), model.config_.beam);
    }
    return beams;
  }

  const SemanticIds& model;
  Tape& tape;
  const Variable& rows;
  std::int64_t levels;
  std::vector<std::int64_t> items;                   // (R) events of each history
  std::vector<std::int64_t> first_token{0};          // (R + 1): of each history with its BOS
  std::vector<std::int32_t> code, bos, place;        // of the tokens of the next pass
  std::int64_t kept = 0;                             // tokens whose keys are in the rows of the passes
  std::vector<std::vector<std::int32_t>> ancestors;  // of each prefix: rows of its codes' keys
};

Tensor SemanticIds::search(Tape& tape, const Batch& batch, const Variable& rows) const {
  const Beams beams = Search(*this, tape, batch, rows).run();
  const std::int64_t levels = codes_->levels(), width = config_.beam * (levels + 1);
  Tensor found = Tensor::empty({beams.users(), width}, DType::f32);
  std::fill_n(found.mutable_data<float>(), found.size(), -1.0F);
  for (std::int64_t u = 0; u < beams.users(); ++u) {
    float* to = found.mutable_data<float>() + u * width;
    for (std::int64_t b = beams.offsets[static_cast<std::size_t>(u)];
         b < beams.offsets[static_cast<std::size_t>(u) + 1]; ++b) {
      const auto at = static_cast<std::size_t>(b);
      for (std::int64_t h = 0; h < levels; ++h)
        *to++ = static_cast<float>(trie_->code(beams.prefix[at].begin, h));
      *to++ = beams.score[at];
    }
  }
  return found;
}

}  // namespace hstu
