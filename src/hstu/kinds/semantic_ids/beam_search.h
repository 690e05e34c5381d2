// Beam search over the tuples of a catalogue: the prefixes of real tuples with the highest log-probabilities,
// level by level, so that every result is a tuple of an item.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/codes/code_trie.h"

namespace hstu {

// The prefixes that are kept, of all users one after another, the best of a user first.
struct Beams {
  std::vector<std::int64_t> offsets;  // (R + 1): those of each user
  std::vector<std::int32_t> parent;   // among the prefixes of the level before, of all users
  std::vector<std::int32_t> code;     // the last one
  std::vector<float> score;           // log-probability, in f32
  std::vector<CodeTrie::Prefix> prefix;

  std::int64_t users() const { return std::ssize(offsets) - 1; }
  std::int64_t size() const { return std::ssize(code); }
};

// The empty prefix of each user, with the log-probability 0.
Beams first_beams(const CodeTrie& trie, std::int64_t users);

// The prefixes of one code more. logits: (beams.size(), codes of the level), of the code behind each prefix;
// their log-softmax is added to its score, and of the prefixes that the trie has, `width` are kept. Equal
// scores are in the order of tuples. A score that is not a number is the lowest.
Beams extend(const CodeTrie& trie, const Beams& beams, std::int64_t level, const float* logits,
             std::int64_t codes, std::int64_t width);

}  // namespace hstu
