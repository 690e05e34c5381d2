// The tokens of a batch of the model of semantic ids. Alphabet: B samples, L levels of codes, T events of
// histories, N tokens, R targets.
//
// An item is L tokens, its codes; before an item that is asked for there is a token BOS. With every item as a
// target a sample of a history i_0 .. i_(n-1) and the candidate i_n is
//
//   i_0  BOS i_1  BOS i_2  ..  BOS i_n        every BOS is seen by the tokens of its own item alone
//
// and with the candidate alone i_0 i_1 .. i_(n-1) BOS i_n. The last code of i_n, which nothing reads, is left
// out. Code h of item j has the place j (L + 1) + h in both, and the BOS before it j (L + 1) - 1: the places
// of a history are the same in training and in a search. An item without codes is tokens of zeros, and no
// target; it is counted as a bad id of the feature "code".
#pragma once

#include <memory>

#include "hstu/batching/batch_layout.h"
#include "hstu/codes/item_codes.h"
#include "hstu/kinds/retrieval/retrieval_layout.h"
#include "hstu/kinds/semantic_ids/semantic_ids_config.h"

namespace hstu {

// Beside the columns of objective/retrieval_columns.h, which have an event for each token. The ids of the
// feature "code" are the rows of all codes (ItemCodes::first_row).
namespace semantic_ids {
inline constexpr std::string_view kCode = "code";
// Of every batch that can train; index_column(kCode) is (N) i32, -1 for BOS.
inline constexpr std::string_view kCodeOffsets = "code.offsets";  // (B + 1) i64
inline constexpr std::string_view kBos = "code.bos";              // (N) i32, 0 for BOS, else -1
inline constexpr std::string_view kPlace = "code.place";          // (N) i32
inline constexpr std::string_view kCodeName = "code.name";        // (N) i64, token_name()
inline constexpr std::string_view kTargetToken = "code.token";    // (L, R) i32, the token that predicts
inline constexpr std::string_view kTargetRow = "code.row";        // (L, R) i32, 0, 1, ..
// (L, R) i64: the code that is asked for, of its level or, with a shared head, of all levels.
inline constexpr std::string_view kTargetCode = "code.target";
// Where the dataset has weights: (L, R) f32, the factor of the loss of each such code, that of its event.
inline constexpr std::string_view kTargetCodeWeight = "code.weight";
// Of the batches of evaluations and requests: (T, L) i32 rows of the codes of each event, or -1.
inline constexpr std::string_view kEventCodes = "event.codes";
}  // namespace semantic_ids

class SemanticIdsLayout final : public BatchLayout {
 public:
  SemanticIdsLayout(std::shared_ptr<const ItemCodes> codes, CodeTargets targets, CodeHeads head);

  void lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const override;

 private:
  struct Sequences;
  void add_tokens(const Samples& samples, std::span<const std::int64_t> index, Batch& batch) const;
  void add_targets(const Sequences& sequences, Batch& batch) const;
  void add_event_codes(const Samples& samples, std::span<const std::int64_t> index, Batch& batch) const;

  std::shared_ptr<const ItemCodes> codes_;
  CodeTargets targets_;
  CodeHeads head_;
  RetrievalLayout events_;
};

}  // namespace hstu
