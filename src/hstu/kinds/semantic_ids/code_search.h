// A search of the model of semantic ids with softmax blocks, on the device of the pass: the keys and values
// of a history are computed once and shared by its beams, those of their codes are found by index, and
// nothing waits for the host between levels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hstu/kinds/semantic_ids/semantic_ids.h"
#include "hstu/ops/convert.h"

namespace hstu {

// The tokens of the histories of a batch, each with its BOS, without users that have none.
struct SearchedHistories {
  SearchedHistories(const Batch& batch, std::int64_t levels);

  std::int64_t users() const { return std::ssize(events); }
  std::int64_t tokens() const { return std::ssize(code); }

  std::vector<std::int64_t> events;            // (R) of each history
  std::vector<std::int64_t> offsets{0};        // (R + 1) into the tokens
  std::vector<std::int32_t> code, bos, place;  // (T) as semantic_ids::kBos has them
};

// What SemanticIds::search() gives, of beams after the last level on the host.
Tensor lists_of(const ops::Beams& beams, const CodeTrie& trie, std::int64_t width);

// Of many batches with one model, whose parameters do not change meanwhile.
class CodeSearch {
 public:
  struct Options {
    bool replays = false;  // on a GPU: batches of the same size as the one before replay its launches
    bool times = false;    // level_ms()
  };
  CodeSearch(const SemanticIds& model, const Context& context, const Options& options);
  ~CodeSearch();

  // Enqueues the search. `rows`: the table in the model's type; to replay, the same one each time.
  void begin(const Batch& batch, const Variable& rows);
  // Waits for it. SemanticIds::search().
  Tensor finish();

  // Of the last search, if they are wanted: milliseconds of each level. The first has the histories.
  std::vector<double> level_ms() const;

 private:
  struct Plan;
  void run(std::int64_t level);
  void record();

  const SemanticIds& model_;
  Context context_;
  Options options_;
  ops::KeptWeights weights_;
  std::unique_ptr<Plan> plan_;
  std::vector<Event> events_;  // before the first level, and after each
};

}  // namespace hstu
