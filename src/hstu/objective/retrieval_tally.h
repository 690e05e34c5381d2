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

// Where a target is in a list. Models that cannot tell some items apart put `group` of them at the places
// first .. first + group - 1, all orders of which are alike.
struct TargetRank {
  std::int64_t first = 1;  // from 1
  std::int64_t group = 1;
  // Of models that find groups: the place of the target's group among the groups, from 1; 0: there is none.
  std::int64_t group_rank = 0;
};

struct RankedTargets {
  std::vector<std::int64_t> user, position, target;  // (n)
  std::vector<TargetRank> rank;                      // (n)
  std::vector<std::uint8_t> tied;                    // (n)
};

// Of a retrieval tally.
const RankedTargets& ranked_targets(const Tally& tally);

class RetrievalTally final : public Tally {
 public:
  using QuestionsOf = std::function<RetrievalQuestions(const Batch&)>;
  // The ranks of the targets of all ranks' rows, of which `outputs` (R, width) are the model's outputs. The
  // excluded items of a row ascend, each once. All ranks call it together with the same arguments and get the
  // same results. Throws NotFiniteError.
  using RankOf = std::function<std::vector<TargetRank>(std::vector<float> outputs,
                                                       RetrievalQuestions questions, Communicator& comm)>;

  // `questions` are those of the rows of the outputs (R, width) of a batch.
  RetrievalTally(std::int64_t width, RankOf rank, QuestionsOf questions);
  // Outputs are vectors, which are compared with the items of the catalogue: its rows stay the same.
  RetrievalTally(const CatalogueScores& catalogue, QuestionsOf questions);

  void add(const Batch& batch, const Tensor& outputs, const Stream& compute) override;
  std::string settle(const Stream& stream, Communicator& comm) override;
  // InternalError: all ranks rank the targets of a batch together.
  std::string collect(const Stream& stream) override;
  void share(Communicator& comm) override;
  std::int64_t examples() const override { return static_cast<std::int64_t>(ranked_.rank.size()); }

  const RankedTargets& ranked() const { return ranked_; }  // of the settled batches

 private:
  struct Part {
    Tensor outputs;  // (R, width) f32
    RetrievalQuestions questions;
    Event ready;
  };

  std::int64_t width_;
  RankOf rank_;
  QuestionsOf questions_;
  std::vector<Part> parts_;
  RankedTargets ranked_;
};

}  // namespace hstu
