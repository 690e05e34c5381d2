// The ranks of targets among all items of a catalogue, of the queries of an evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/objective/catalogue_ranks.h"
#include "hstu/objective/tally.h"

namespace hstu {

// What the samples of a batch ask for: B events, and for each with a history a row of the model's outputs.
struct RetrievalQuestions {
  std::vector<std::int64_t> user, position;  // (B) original user ids; the event whose item is asked for
  std::vector<std::int64_t> target;          // (B) that item
  std::vector<std::uint8_t> tied;            // (B) 1: the event has the time of the one before it
  std::vector<std::uint8_t> has_row;         // (B) 0: the history is empty, and no row is of the sample
  // Items that the user has had, in any order and perhaps more than once: those of sample b are
  // [offsets[b], offsets[b + 1]).
  std::vector<std::int64_t> seen_offsets, seen;
  std::vector<std::int64_t> place;  // (B) in the global batch (Batch::places); of one rank empty
};

// Where a target is in a list. Models that cannot tell some items apart put `group` of them at the places
// first .. first + group - 1, all orders of which are alike.
struct ListPlace {
  std::int64_t first = kUnranked;  // from 1
  std::int64_t group = 1;
  // Of models that find groups: the place of the target's group among the groups, from 1; 0: there is none.
  std::int64_t group_rank = 0;
};

// Why a model has no rank of a target.
enum class Unanswered : std::uint8_t {
  no,          // it has one, or a search has not found it
  no_history,  // of the events before it the model reads none
  new_item,    // the model's catalogue does not have it
};

inline constexpr Choice<Unanswered> kUnanswered[] = {
    {"no", Unanswered::no}, {"no_history", Unanswered::no_history}, {"new_item", Unanswered::new_item}};

struct TargetRank {
  ListPlace unseen = {};  // among the items that the user has not had; the target is one in any case
  ListPlace all = {};     // among all items
  Unanswered why = Unanswered::no;
};

struct RankedTargets {
  std::vector<std::int64_t> user, position, target;  // (n)
  std::vector<TargetRank> rank;                      // (n)
  std::vector<std::uint8_t> tied;                    // (n)
  std::vector<std::uint8_t> repeated;                // (n) 1: the user has had the target
};

// Of a retrieval tally.
const RankedTargets& ranked_targets(const Tally& tally);

class RetrievalTally final : public Tally {
 public:
  using QuestionsOf = std::function<RetrievalQuestions(const Batch&)>;
  // The ranks of the targets of all ranks' rows, of which `outputs` (R, width) are the model's outputs: all
  // questions have a row, and their seen items ascend, each once. All ranks call it together with the same
  // arguments and get the same results. Throws NotFiniteError.
  using RankOf = std::function<std::vector<TargetRank>(std::vector<float> outputs,
                                                       RetrievalQuestions questions, Communicator& comm)>;

  // `questions` are those of the samples of a batch.
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
