// Compares the answers of an approximate index with the exact ones of `hstu predict --top`.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

struct AnnRecallOptions {
  Path answers, exact;                     // tables: request or user, item, and rank
  std::vector<std::int64_t> cutoffs = {};  // K; none: 1, 10, 100 as far as lists reach
};

struct AnnRecall {
  std::int64_t lists = 0;           // of the exact answers
  std::int64_t without_answer = 0;  // of them: they count as recall 0
  std::int64_t unknown = 0;         // lists of the index alone: they do not count
  // Of each cutoff, ascending: the mean over lists of the share of the exact first K that is among the first
  // K of the index.
  std::vector<std::int64_t> cutoffs;
  std::vector<double> recall;
};

// A table has a row for each item of a list: the list's name in the column "request" if both tables have it,
// else in "user"; the item; and optionally "rank", from 1, else rows are in the order of ranks. A text and
// the number that hstu makes of it (dataset/names.h) are one id, and so are 10 and 10.0. Both tables are in
// memory, 16 bytes for an item. Throws UsageError for a missing column and a K beyond the last rank of the
// exact lists, Error naming file, line and column of a bad rank, and for a rank that a list has twice, or an
// item that an exact list has twice; an item that an answer has twice counts once, at its first place.
AnnRecall ann_recall(const AnnRecallOptions& options);

// {"lists", "without_answer", "unknown", "recall@K", ...}
Json to_json(const AnnRecall& recall);

}  // namespace hstu
