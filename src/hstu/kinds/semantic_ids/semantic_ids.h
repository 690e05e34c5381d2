// The model of semantic ids: a decoder over the codes of a user's items, which generates the codes of the
// next one. Source: "Recommender Systems with Generative Retrieval" (TIGER), in the form without an encoder
// that NVIDIA's recsys-examples have (sid_gr).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/codes/code_trie.h"
#include "hstu/kinds/semantic_ids/semantic_ids_config.h"
#include "hstu/kinds/semantic_ids/semantic_ids_layout.h"
#include "hstu/model/decoder_stack.h"
#include "hstu/model/model.h"
#include "hstu/ops/beam_step.h"

namespace hstu {

class SemanticIds final : public Model {
 public:
  SemanticIds(const SemanticIdsConfig& config, std::shared_ptr<const ItemCodes> codes,
              std::shared_ptr<const CodeTrie> trie, std::uint64_t seed, DType type = DType::f32);

  const ParameterSet& parameters() const override { return parameters_; }
  ParameterSet& parameters() override { return parameters_; }
  void move_to(const Context& context, DType compute) override;
  std::vector<FeatureSpec> features() const override;
  std::int64_t embedding_dim() const override { return config_.dim; }
  const BatchLayout& layout() const override { return layout_; }

  // On a tape that records: (L * R, D), the vectors of the tokens that predict, level by level, of which
  // logits() are taken. Otherwise the tuples that a search finds for each sample with a history: search().
  Variable forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                   const Draws& draws) const override;
  HstuStackConfig layers() const override;
  std::string why_whole_heads() const override {
    return "its search keeps the keys of all heads on the rank that has the sample";
  }

  // Logits (n, codes) of vectors (n, D): of the codes of one level, or of all.
  Variable logits(Tape& tape, const Variable& vectors, std::int64_t level) const;
  Variable logits(Tape& tape, const Variable& vectors) const;

  // The prefixes that searches keep from now on: at most as many as there are tuples.
  void set_beam(std::int64_t beam) { config_.beam = beam; }
  // (R, beam * (L + 1)) f32 on the host: of each sample with a history up to `beam` tuples, the most probable
  // first, each as its codes and its log-probability; -1 everywhere where there are fewer tuples. Of softmax
  // blocks CodeSearch; of HSTU's layers the prefixes are chosen on the host.
  Tensor search(Tape& tape, const Batch& batch, const Variable& rows) const;

 private:
  friend class CodeSearch;
  // Tokens of a pass by the rows that they read; -1: none.
  struct Tokens {
    Tensor code, bos;  // (N) i32; undefined bos: none is
    DecoderTokens at;
  };
  struct HstuSearch;

  // (N, D) what the first block reads.
  Variable embed(Tape& tape, const Variable& rows, const Tokens& tokens, const Draws& draws) const;

  Variable encode(Tape& tape, const Variable& rows, const Tokens& tokens, const Draws& draws,
                  const StackMask& mask) const;
  // Outputs of encode() as logits() take them, in the type of sums.
  Variable normed(Tape& tape, const Variable& x) const;
  Variable vectors_of_targets(Tape& tape, const Batch& batch, const Variable& rows, const Draws& draws) const;

  SemanticIdsConfig config_;
  std::shared_ptr<const ItemCodes> codes_;
  std::shared_ptr<const CodeTrie> trie_;
  std::vector<ops::TrieLevel> trie_levels_;  // on the model's device
  SemanticIdsLayout layout_;
  DType compute_;  // of tokens
  ParameterSet parameters_;
  const Parameter& bos_;    // (1, D)
  const Parameter* place_;  // (places, D); null: positions are not learned
  std::optional<DecoderStack> softmax_;
  std::optional<HstuStack> hstu_;
  const Parameter& output_norm_;  // (D)
  const Parameter& head_;         // (D, codes of all levels)
};

// A trie as a search reads it, on the host.
std::vector<ops::TrieLevel> trie_levels(const CodeTrie& trie, const ItemCodes& codes);

// The blocks of the configuration.
DecoderStackConfig decoder_config(const SemanticIdsConfig& config);
HstuStackConfig hstu_config(const SemanticIdsConfig& config);

}  // namespace hstu
