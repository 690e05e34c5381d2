#include "hstu/objective/retrieval_tally.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {
namespace {

// Questions and outputs of a global batch, of some ranks.
struct Asked {
  RetrievalQuestions questions;
  std::vector<float> outputs;  // (R, width)
};

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

template <typename T>
void gather(std::vector<T>& values, Communicator& comm) {
  values = comm.all_gather(std::span<const T>(values));
}

void check_sizes(const RetrievalQuestions& q, std::int64_t rows) {
  const std::size_t n = q.target.size();
  for (const std::size_t size :
       {q.user.size(), q.position.size(), q.tied.size(), q.has_row.size(), q.seen_offsets.size() - 1})
    require(size == n, "expected {} questions, found {}", n, size);
  require(std::count(q.has_row.begin(), q.has_row.end(), 1) == rows, "expected {} rows of outputs, found {}",
          std::count(q.has_row.begin(), q.has_row.end(), 1), rows);
}

std::span<const std::int64_t> seen_of(const RetrievalQuestions& q, std::size_t sample) {
  return std::span(q.seen).subspan(
      static_cast<std::size_t>(q.seen_offsets[sample]),
      static_cast<std::size_t>(q.seen_offsets[sample + 1] - q.seen_offsets[sample]));
}

// Seen items ascend then, each once.
void append_samples(RetrievalQuestions& to, const RetrievalQuestions& from) {
  append(to.user, from.user);
  append(to.position, from.position);
  append(to.target, from.target);
  append(to.tied, from.tied);
  append(to.has_row, from.has_row);
  append(to.place, from.place);
  for (std::size_t b = 0; b < from.target.size(); ++b) {
    const auto seen = seen_of(from, b);
    std::vector<std::int64_t> items(seen.begin(), seen.end());
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
    append(to.seen, items);
    to.seen_offsets.push_back(std::ssize(to.seen));
  }
}

// The questions that have rows.
RetrievalQuestions with_rows(const RetrievalQuestions& all) {
  RetrievalQuestions asked;
  asked.seen_offsets.push_back(0);
  for (std::size_t b = 0; b < all.target.size(); ++b) {
    if (all.has_row[b] == 0) continue;
    asked.user.push_back(all.user[b]);
    asked.position.push_back(all.position[b]);
    asked.target.push_back(all.target[b]);
    const auto seen = seen_of(all, b);
    asked.seen.insert(asked.seen.end(), seen.begin(), seen.end());
    asked.seen_offsets.push_back(std::ssize(asked.seen));
  }
  return asked;
}

std::string why_not_finite(const Asked& asked, std::int64_t width) {
  const auto bad =
      std::find_if(asked.outputs.begin(), asked.outputs.end(), [](float x) { return !std::isfinite(x); });
  if (bad == asked.outputs.end()) return "";
  const auto row = static_cast<std::size_t>((bad - asked.outputs.begin()) / width);
  const RetrievalQuestions questions = with_rows(asked.questions);
  return fmt::format("the vector of user {} at event {} has a value that is NaN or infinite",
                     questions.user[row], questions.position[row]);
}

// Those of all ranks, in the order of ranks.
void gather(Asked& asked, Communicator& comm) {
  std::vector<std::int64_t> counts;  // of seen items of each sample
  const std::vector<std::int64_t>& offsets = asked.questions.seen_offsets;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) counts.push_back(offsets[b + 1] - offsets[b]);
  gather(counts, comm);
  gather(asked.questions.user, comm);
  gather(asked.questions.position, comm);
  gather(asked.questions.target, comm);
  gather(asked.questions.tied, comm);
  gather(asked.questions.has_row, comm);
  gather(asked.questions.seen, comm);
  gather(asked.questions.place, comm);
  gather(asked.outputs, comm);
  asked.questions.seen_offsets.assign(1, 0);
  for (const std::int64_t count : counts)
    asked.questions.seen_offsets.push_back(asked.questions.seen_offsets.back() + count);
}

}  // namespace

RetrievalTally::RetrievalTally(std::int64_t width, RankOf rank, QuestionsOf questions)
    : width_(width), rank_(std::move(rank)), questions_(std::move(questions)) {}

RetrievalTally::RetrievalTally(const CatalogueScores& catalogue, QuestionsOf questions)
    : RetrievalTally(
          catalogue.rows.width,
          [blocks = std::make_shared<CatalogueBlocks>(catalogue, kKeptCatalogueBytes)](
              std::vector<float> vectors, RetrievalQuestions asked, Communicator& comm) {
            std::vector<TargetRank> found;
            for (const CatalogueRank& rank : catalogue_ranks(
                     *blocks, {std::move(vectors), std::move(asked.seen_offsets), std::move(asked.seen)},
                     asked.target, comm))
              found.push_back({.unseen = {.first = rank.unseen},
                               .all = {.first = rank.all},
                               .why = rank.all == kUnranked ? Unanswered::new_item : Unanswered::no});
            return found;
          },
          std::move(questions)) {}

void RetrievalTally::add(const Batch& batch, const Tensor& outputs, const Stream& compute) {
  Part part{outputs, questions_(batch), Event(compute.device())};
  check_sizes(part.questions, outputs.rows());
  require(outputs.rows() == 0 || outputs.cols() == width_, "expected outputs of width {}, found {}", width_,
          outputs.cols());
  part.ready.record_later(compute);
  parts_.push_back(std::move(part));
}

std::string RetrievalTally::collect(const Stream& /*stream*/) {
  require(false, "the targets of a batch are ranked by settle() alone");
  return "";
}

void RetrievalTally::share(Communicator& /*comm*/) {
  require(false, "the targets of a batch are ranked by settle() alone");
}

std::string RetrievalTally::settle(const Stream& stream, Communicator& comm) {
  Asked asked;
  asked.questions.seen_offsets.assign(1, 0);
  for (const Part& part : std::exchange(parts_, {})) {
    stream.wait(part.ready);
    const Tensor outputs = part.outputs.to_host(stream);
    asked.outputs.insert(asked.outputs.end(), outputs.data<float>(), outputs.data<float>() + outputs.size());
    append_samples(asked.questions, part.questions);
  }
  if (comm.size() > 1) gather(asked, comm);
  if (std::string why = why_not_finite(asked, width_); !why.empty()) return why;

  std::vector<TargetRank> ranks;  // of the questions with rows
  try {
    ranks = rank_(std::move(asked.outputs), with_rows(asked.questions), comm);
  } catch (const NotFiniteError& error) {  // the same on all ranks
    return error.what();
  }
  const RetrievalQuestions& questions = asked.questions;
  std::vector<TargetRank> all(questions.target.size(), {.why = Unanswered::no_history});
  for (std::size_t b = 0, row = 0; b < all.size(); ++b)
    if (questions.has_row[b] != 0) all[b] = ranks[row++];
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::vector<std::int64_t>& place = questions.place;
  if (!place.empty())
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
  for (const std::size_t b : order) {
    ranked_.user.push_back(questions.user[b]);
    ranked_.position.push_back(questions.position[b]);
    ranked_.target.push_back(questions.target[b]);
    ranked_.tied.push_back(questions.tied[b]);
    ranked_.rank.push_back(all[b]);
    const auto seen = seen_of(questions, b);
    ranked_.repeated.push_back(std::binary_search(seen.begin(), seen.end(), questions.target[b]) ? 1 : 0);
  }
  return "";
}

const RankedTargets& ranked_targets(const Tally& tally) {
  const auto* const retrieval = dynamic_cast<const RetrievalTally*>(&tally);
  require(retrieval != nullptr, "a tally of another objective");
  return retrieval->ranked();
}

}  // namespace hstu
