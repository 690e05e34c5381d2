// The ranks of targets among all items of a catalogue, of the queries of an evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hstu/objective/catalogue_ranks.h"
#include "hstu/objective/tally.h"

namespace hstu {

// What the rows of a model's outputs ask for: R rows, each the vector of a user at the time of an event.
struct RetrievalQuestions {
  std::vector<std::int64_t> user, position;  // (R) original user ids; the event whose item is asked for
  std::vector<std::int64_t> target;          // (R) that item
  std::vector<std::uint8_t> tied;            // (R) 1: the event has the time of the one before it
  // Items that do not count, such as those of the history, in any order and perhaps more than once: those of
  // row r are [offsets[r], offsets[r + 1]). Empty: none. The target counts always.
  std::vector<std::int64_t> excluded_offsets, excluded;
  std::vector<std::int64_t>
      place;  // (R) of its sample in the global batch (Batch::places); of one rank empty
};

struct RankedTargets {
  std::vector<std::int64_t> user, position, target, rank;  // (n) rank: from 1
  std::vector<std::uint8_t> tied;                          // (n)
};

class RetrievalTally final : public Tally {
 public:
  using QuestionsOf = std::function<RetrievalQuestions(const Batch&)>;

  // `questions` are those of the rows of the outputs (R, E) of a batch.
  RetrievalTally(CatalogueScores catalogue, QuestionsOf questions);

  void add(const Batch& batch, const Tensor& outputs, const Stream& compute) override;
  std::string settle(const Stream& stream, Communicator& comm) override;
  // InternalError: all ranks rank the targets of a batch together.
  std::string collect(const Stream& stream) override;
  void share(Communicator& comm) override;
  std::int64_t examples() const override { return static_cast<std::int64_t>(ranked_.rank.size()); }

  const RankedTargets& ranked() const { return ranked_; }  // of the settled batches

 private:
  struct Part {
    Tensor vectors;  // (R, E) f32
    RetrievalQuestions questions;
    Event ready;
  };

  CatalogueScores catalogue_;
  QuestionsOf questions_;
  std::vector<Part> parts_;
  RankedTargets ranked_;
};

}  // namespace hstu
