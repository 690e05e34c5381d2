// The stack of a decoder of today's language models: blocks of softmax attention and an MLP, each behind a
// norm and beside a residual.
//
//   x = x + drop(attention(norm(x)) W_o + b_o),  x = x + drop(activation(norm(x) W_1 + b_1) W_2 + b_2)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/model/draws.h"
#include "hstu/model/hstu_stack.h"
#include "hstu/model/mlp.h"
#include "hstu/model/recompute.h"
#include "hstu/ops/activation.h"
#include "hstu/ops/beam_attention.h"

namespace hstu {

struct DecoderStackConfig {
  std::int64_t layers = 0;
  std::int64_t dim = 0;       // D: width of tokens
  std::int64_t heads = 0;     // H
  std::int64_t head_dim = 0;  // width of a head's queries, keys and values
  std::int64_t hidden = 0;    // width of the MLP
  ops::Activation activation = ops::Activation::gelu;
  double dropout = 0;        // of the attention's weights and of both results that are added
  double epsilon = 1e-5;     // of the norms
  double rotary_base = 0;    // 0: positions do not turn queries and keys
  Recompute recompute = {};  // norm: both norms; gate: the MLP's activation; silu: nothing
};

// Keys and values of a block's tokens, (T, H * D) each.
struct DecoderKeys {
  ops::Columns k, v;
};
using KeysOfBlocks = std::vector<DecoderKeys>;

// Tokens of a pass. `positions`: (T) i32 of all, wanted_positions those of the wanted ones; read if the stack
// turns queries and keys.
struct DecoderTokens {
  StackRows all, wanted;
  Tensor positions, wanted_positions;
  // Of a forward pass without a mask: the last token of each sample is wanted, and no other.
  bool wants_last = false;
  KeysOfBlocks* keys = nullptr;  // not null: gets those of each block
};

// The beams of a search (attention/beams.h): one token for each of R users' W beams.
struct DecoderBeams {
  std::int64_t beams = 0;           // W
  Tensor offsets;                   // (R + 1) i64 tokens of the histories
  KeysOfBlocks history;             // theirs
  std::vector<KeysOfBlocks> codes;  // of the tokens of earlier passes; a pass adds its own
  Tensor ancestors;                 // (R * W, codes before the token) i32
  Tensor positions;                 // (R * W) i32 as in DecoderTokens
};

class DecoderBlock {
 public:
  // Adds PREFIX.attention_norm, .qkv, .output, .mlp_norm, .mlp.0 and .mlp.1 to the set.
  DecoderBlock(ParameterSet& set, const std::string& prefix, const DecoderStackConfig& config);

  // Places of draws that a block takes.
  static constexpr std::uint64_t kPlaces = 3;

  // x (T, D) -> (n, D) of the tokens `rows`. shape's query_offsets must agree.
  Variable operator()(Tape& tape, const Variable& x, const StackRows& rows, const DecoderTokens& tokens,
                      const ops::AttentionShape& shape, const Draws& draws, std::uint64_t first_place) const;

  // x (R * W, D) -> (R * W, D) of the tokens of beams. Block `index` of the stack.
  Variable operator()(Tape& tape, const Variable& x, DecoderBeams& beams, std::size_t index) const;

 private:
  struct Operands {
    ops::Columns q, k, v;
  };
  Variable compute(Tape& tape, const Variable& x, const StackRows& rows, const DecoderTokens& tokens,
                   const ops::AttentionShape& shape, const Draws& draws, std::uint64_t first_place) const;
  // What follows attention, in a forward pass without dropout.
  Variable finish(Tape& tape, const Variable& x, const Variable& o) const;
  ops::BeamShape beam_shape(std::int64_t beams, const Tensor& offsets) const;
  Operands project(Tape& tape, const Variable& z, const StackRows& rows, const DecoderTokens& tokens) const;

  DecoderStackConfig config_;
  const Parameter& attention_norm_;
  LinearParameters qkv_, output_;
  const Parameter& mlp_norm_;
  LinearParameters first_, second_;
};

class DecoderStack {
 public:
  // Adds the blocks PREFIX.0, PREFIX.1, ... to the set.
  DecoderStack(ParameterSet& set, const std::string& prefix, const DecoderStackConfig& config);

  // x (T, D) -> (n, D) of the `wanted` tokens. Block i draws its dropout at the places first_place + kPlaces
  // * i on.
  Variable operator()(Tape& tape, Variable x, const DecoderTokens& tokens, const Draws& draws,
                      std::uint64_t first_place, const StackMask& mask) const;

  // x (R * W, D) -> (R * W, D) of the tokens of beams, of a forward pass only.
  Variable operator()(Tape& tape, Variable x, DecoderBeams& beams) const;

  const DecoderStackConfig& config() const { return config_; }

 private:
  DecoderStackConfig config_;
  std::vector<DecoderBlock> blocks_;
};

}  // namespace hstu
