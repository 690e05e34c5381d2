#include <algorithm>
#include <numeric>
#include <utility>

#include "hstu/kinds/semantic_ids/code_search.h"
#include "hstu/kinds/semantic_ids/semantic_ids.h"
#include "hstu/ops/history_keys.h"

namespace hstu {
namespace {

std::vector<std::int64_t> counted(std::int64_t n) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), std::int64_t{0});
  return values;
}

}  // namespace

// The search of HSTU's layers, whose prefixes are chosen on the host. A user has as many places for prefixes
// as the beam, which may be empty.
struct SemanticIds::HstuSearch {
  HstuSearch(const SemanticIds& of, Tape& on, const Batch& batch, const Variable& table)
      : model(of),
        tape(on),
        rows(table),
        levels(of.codes_->levels()),
        width(of.config_.beam),
        histories(batch, levels),
        next(histories) {}

  // A list on the device of the pass.
  template <typename T>
  Tensor list(const std::vector<T>& values) const {
    return Tensor::from<T>({std::ssize(values)}, values).copy(tape.context());
  }

  // (n, codes of the level) of the tokens in `next`, of which the last of each sample is wanted.
  Tensor next_logits(HistoryKeys& keys, std::int64_t level) {
    const std::vector<std::int64_t>& offsets = next.offsets;
    Tokens tokens{.code = list(next.code), .bos = list(next.bos), .at = {}};
    tokens.at.positions = list(next.place);
    tokens.at.all = {.rows = {}, .offsets = list(offsets), .names = {}};
    std::vector<std::int32_t> last;
    for (std::size_t s = 1; s < offsets.size(); ++s)
      last.push_back(static_cast<std::int32_t>(offsets[s] - 1));
    tokens.at.wanted = {.rows = list(last), .offsets = list(counted(std::ssize(offsets))), .names = {}};
    keys.keep(kept, next.tokens(), tape.context());
    const Variable x =
        model.encode(tape, rows, tokens, Draws(), {.mask = {}, .contexts = {}, .targets = {}, .keys = &keys});
    kept += next.tokens();
    return model.logits(tape, model.normed(tape, x), level).value().to_host(tape.context().stream);
  }

  // The tokens of the latest codes, one for each place, behind the history and the codes before them, whose
  // keys are in rows of earlier passes.
  void add_prefixes(const ops::Beams& beams, std::int64_t level, HistoryKeys& keys) {
    const std::int64_t users = histories.users(), places = users * width;
    const std::int32_t* const code = beams.code.data<std::int32_t>();
    next.code.assign(code, code + places);
    next.bos.assign(static_cast<std::size_t>(places), -1);
    next.offsets = counted(places + 1);
    next.place.clear();
    std::vector<std::int32_t> pages, own(static_cast<std::size_t>(places));
    std::vector<std::int64_t> page_offsets{0}, lengths;
    for (std::int64_t b = 0; b < places; ++b) {
      const auto u = static_cast<std::size_t>(b / width);
      next.place.push_back(static_cast<std::int32_t>(histories.events[u] * (levels + 1) + level - 1));
      for (std::int64_t t = histories.offsets[u]; t < histories.offsets[u + 1]; ++t)
        pages.push_back(static_cast<std::int32_t>(t));
      for (std::int64_t c = 0; c + 1 < level; ++c)
        pages.push_back(static_cast<std::int32_t>(histories.tokens() + c * places) +
                        beams.ancestors.data<std::int32_t>()[b * (level - 1) + c]);
      lengths.push_back(std::ssize(pages) - page_offsets.back());
      page_offsets.push_back(std::ssize(pages));
    }
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

  ops::Beams run() {
    const std::int64_t users = histories.users();
    ops::Beams beams = ops::first_beams(users, host_context());
    if (users == 0) return beams;
    const Shape shape{next.tokens() + (levels - 1) * users * width,
                      model.config_.heads * model.config_.head_dim};
    HistoryKeys keys;
    for (std::int64_t l = 0; l < model.config_.layers; ++l)
      keys.layers.push_back({Tensor::empty(shape, rows.value().dtype(), tape.context()),
                             Tensor::empty(shape, rows.value().dtype(), tape.context())});
    const std::vector<ops::TrieLevel> trie = trie_levels(*model.trie_, *model.codes_);
    for (std::int64_t level = 0; level < levels; ++level) {
      if (level > 0) add_prefixes(beams, level, keys);
      beams = ops::beam_step(trie[static_cast<std::size_t>(level)], beams, level, next_logits(keys, level),
                             width, host_context());
    }
    return beams;
  }

  const SemanticIds& model;
  Tape& tape;
  const Variable& rows;
  std::int64_t levels, width;
  const SearchedHistories histories;
  SearchedHistories next;  // the tokens of the next pass
  std::int64_t kept = 0;   // tokens whose keys are in the rows of the passes
};

Tensor SemanticIds::search(Tape& tape, const Batch& batch, const Variable& rows) const {
  if (softmax_) {
    CodeSearch search(*this, tape.context(), {});
    search.begin(batch, rows);
    return search.finish();
  }
  const ops::Beams beams = HstuSearch(*this, tape, batch, rows).run();
  return lists_of(beams, *trie_, config_.beam);
}

}  // namespace hstu
