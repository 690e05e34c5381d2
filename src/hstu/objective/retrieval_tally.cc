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
  for (const std::size_t size : {q.user.size(), q.position.size(), q.target.size(), q.tied.size()})
    require(static_cast<std::int64_t>(size) == rows, "expected {} questions, found {}", rows, size);
  require(q.excluded_offsets.empty() || std::ssize(q.excluded_offsets) == rows + 1,
          "expected {} offsets of excluded items, found {}", rows + 1, q.excluded_offsets.size());
}

// The items that do not count for row `row`, ascending, each once.
std::vector<std::int64_t> excluded_of(const RetrievalQuestions& q, std::int64_t row) {
  if (q.excluded_offsets.empty()) return {};
  const auto r = static_cast<std::size_t>(row);
  std::vector<std::int64_t> items(q.excluded.begin() + q.excluded_offsets[r],
                                  q.excluded.begin() + q.excluded_offsets[r + 1]);
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return items;
}

void append_rows(Asked& to, const RetrievalQuestions& from) {
  append(to.questions.user, from.user);
  append(to.questions.position, from.position);
  append(to.questions.target, from.target);
  append(to.questions.tied, from.tied);
  append(to.questions.place, from.place);
  for (std::int64_t r = 0; r < std::ssize(from.target); ++r) {
    append(to.questions.excluded, excluded_of(from, r));
    to.questions.excluded_offsets.push_back(std::ssize(to.questions.excluded));
  }
}

std::string why_not_finite(const Asked& asked, std::int64_t width) {
  const auto bad =
      std::find_if(asked.outputs.begin(), asked.outputs.end(), [](float x) { return !std::isfinite(x); });
  if (bad == asked.outputs.end()) return "";
  const auto row = static_cast<std::size_t>((bad - asked.outputs.begin()) / width);
  return fmt::format("the vector of user {} at event {} has a value that is NaN or infinite",
                     asked.questions.user[row], asked.questions.position[row]);
}

// The rows of all ranks, in the order of ranks.
void gather_rows(Asked& asked, Communicator& comm) {
  std::vector<std::int64_t> counts;  // of excluded items of each row
  const std::vector<std::int64_t>& offsets = asked.questions.excluded_offsets;
  for (std::size_t r = 0; r + 1 < offsets.size(); ++r) counts.push_back(offsets[r + 1] - offsets[r]);
  gather(counts, comm);
  gather(asked.questions.user, comm);
  gather(asked.questions.position, comm);
  gather(asked.questions.target, comm);
  gather(asked.questions.tied, comm);
  gather(asked.questions.excluded, comm);
  gather(asked.questions.place, comm);
  gather(asked.outputs, comm);
  asked.questions.excluded_offsets.assign(1, 0);
  for (const std::int64_t count : counts)
    asked.questions.excluded_offsets.push_back(asked.questions.excluded_offsets.back() + count);
}

}  // namespace

RetrievalTally::RetrievalTally(std::int64_t width, RankOf rank, QuestionsOf questions)
    : width_(width), rank_(std::move(rank)), questions_(std::move(questions)) {}

RetrievalTally::RetrievalTally(const CatalogueScores& catalogue, QuestionsOf questions)
    : RetrievalTally(
          catalogue.rows.width,
          [blocks = std::make_shared<CatalogueBlocks>(catalogue, kKeptCatalogueBytes)](
              std::vector<float> vectors, RetrievalQuestions asked, Communicator& comm) {
            const std::vector<std::int64_t> ranks = catalogue_ranks(
                *blocks, {std::move(vectors), asked.excluded_offsets, std::move(asked.excluded)},
                asked.target, comm);
            std::vector<TargetRank> found;
            found.reserve(ranks.size());
            for (const std::int64_t rank : ranks) found.push_back({.first = rank});
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
  asked.questions.excluded_offsets.assign(1, 0);
  for (const Part& part : std::exchange(parts_, {})) {
    stream.wait(part.ready);
    const Tensor outputs = part.outputs.to_host(stream);
    asked.outputs.insert(asked.outputs.end(), outputs.data<float>(), outputs.data<float>() + outputs.size());
    append_rows(asked, part.questions);
  }
  if (comm.size() > 1) gather_rows(asked, comm);
  if (std::string why = why_not_finite(asked, width_); !why.empty()) return why;

  std::vector<TargetRank> ranks;
  try {
    ranks = rank_(std::move(asked.outputs), asked.questions, comm);
  } catch (const NotFiniteError& error) {  // the same on all ranks
    return error.what();
  }
  std::vector<std::size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::vector<std::int64_t>& place = asked.questions.place;
  if (!place.empty())
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
  for (const std::size_t r : order) {
    ranked_.user.push_back(asked.questions.user[r]);
    ranked_.position.push_back(asked.questions.position[r]);
    ranked_.target.push_back(asked.questions.target[r]);
    ranked_.tied.push_back(asked.questions.tied[r]);
    ranked_.rank.push_back(ranks[r]);
  }
  return "";
}

const RankedTargets& ranked_targets(const Tally& tally) {
  const auto* const retrieval = dynamic_cast<const RetrievalTally*>(&tally);
  require(retrieval != nullptr, "a tally of another objective");
  return retrieval->ranked();
}

}  // namespace hstu
