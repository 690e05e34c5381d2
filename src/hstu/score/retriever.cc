#include "hstu/score/retriever.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/batching/all_items.h"
#include "hstu/objective/retrieval_columns.h"
#include "hstu/objective/retrieval_objective.h"
#include "hstu/run/state.h"
#include "hstu/score/needed_columns.h"

namespace hstu {
namespace {

const RetrievalObjective& retrieval_of(const Learner& learner) {
  const RetrievalObjective* const retrieval = learner.objective->retrieval();
  if (retrieval == nullptr)
    fail_usage(
        "a model of this kind scores candidates and has no vectors to find items by: name requests by "
        "--requests");
  return *retrieval;
}

}  // namespace

Retriever::Retriever(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset,
                     const Dataset& items, Task task, bool row_stable)
    : dataset_(dataset),
      needed_(context_of_events(options, dataset.manifest())),
      pass_(options, checkpoint, dataset, std::move(task), row_stable),
      bad_ids_(OnBadId::count, pass_.learner().model->features()),
      lists_(pass_.learner().objective->lists()) {
  if (lists_ != nullptr) {
    items_ = lists_->items();
    return;
  }
  Learner& learner = pass_.learner();
  const RetrievalObjective& retrieval = retrieval_of(learner);
  items_ = learner.known_items(all_items(items), items.manifest().id == saved_dataset(checkpoint));
  check(!items_.empty(), "{}: the model has no item: nothing can be found", checkpoint.path().string());
  learner.open_catalogues(items_, items);
  catalogue_ = retrieval.scores(
      {.catalogues = learner.catalogue_rows(false), .dataset = &items, .compute = learner.compute});
  blocks_.emplace(catalogue_, kept_by_server(catalogue_));
}

std::vector<std::int64_t> Retriever::contexts_of(const User& user) const {
  std::vector<std::int64_t> values(needed_.size(), 0);
  if (user.before.empty()) return values;
  for (std::size_t c = 0; c < values.size(); ++c) {
    if (!needed_[c]) continue;
    values[c] = user.events != nullptr
                    ? user.events->context[c].back()
                    : dataset_.context(dataset_.manifest().context[c])[user.before.latest()];
  }
  return values;
}

bool Retriever::is_trained(std::int64_t item) const {
  return lists_ != nullptr ? std::ranges::binary_search(items_, item)
                           : pass_.learner().tables[0].contains(item);
}

std::pair<std::vector<std::int64_t>, Tensor> Retriever::outputs_of(std::span<const User> users) {
  std::vector<Candidate> candidates;
  candidates.reserve(users.size());
  std::vector<std::vector<std::int64_t>> contexts;
  for (const User& user : users) contexts.push_back(contexts_of(user));
  for (const User& user : users)
    candidates.push_back({.name = std::ssize(candidates),
                          .is_anchor = false,
                          .user = user.user,
                          .item = items_.front(),  // any: what is asked for is not read
                          .time = user.time,
                          .before = user.before,
                          .events = user.events,
                          .context = contexts[candidates.size()]});
  const Tensor outputs = pass_.outputs(candidates);
  const auto sample = pass_.batch().values<std::int32_t>(retrieval::kTargetSample);
  std::vector<std::int64_t> answered(sample.begin(), sample.end());
  if (answered.empty()) return {};
  return {std::move(answered), outputs.to_host(pass_.learner().compute.stream)};
}

Retriever::Answers Retriever::answers(std::span<const User> users) {
  if (lists_ != nullptr) return lists_of(users);
  const auto [answered, outputs] = outputs_of(users);
  bad_ids_.add(pass_.batch().bad_ids);
  if (answered.empty()) return {};
  return {.vectors = {outputs.data<float>(), outputs.data<float>() + outputs.size()},
          .lists = {},
          .user = answered};
}

bool Retriever::is_short(const List& list, const User& user) const {
  if (std::ssize(list) >= user.top) return false;
  const auto known = std::ranges::count_if(
      user.seen, [&](std::int64_t item) { return std::ranges::binary_search(items_, item); });
  return std::ssize(list) < std::min(user.top, std::ssize(items_) - known);
}

namespace {

// The width of the searches of others, which they have again at the end.
struct OwnBeam {
  ListObjective& lists;
  const std::int64_t width = lists.beam();
  ~OwnBeam() { lists.set_beam(width); }
};

}  // namespace

// A search that keeps W prefixes finds W items or more, or all: where too few are left without the seen ones,
// another one keeps as many prefixes more. Powers of two let users search together, but not with more
// prefixes than all of `users` have in the first search.
Retriever::Answers Retriever::lists_of(std::span<const User> users) {
  constexpr std::int64_t kWidest = 1 << 16, kWidestAgain = 8192;
  const OwnBeam own{*lists_};
  std::map<std::int64_t, std::vector<std::size_t>> turns, wider;  // the users by the width of their search
  std::map<std::size_t, List> lists;
  for (std::size_t u = 0; u < users.size(); ++u)
    turns[std::max(own.width, std::min(users[u].top, kWidest))].push_back(u);
  const auto search = [&](std::int64_t beam, std::span<const std::size_t> turn) {
    lists_->set_beam(beam);
    std::vector<User> together;
    for (const std::size_t u : turn) together.push_back(users[u]);
    const auto [answered, outputs] = outputs_of(together);
    for (std::size_t r = 0; r < answered.size(); ++r) {
      const std::size_t u = turn[static_cast<std::size_t>(answered[r])];
      List& list = lists[u] = lists_->list(
          std::span(outputs.data<float>() + static_cast<std::int64_t>(r) * outputs.cols(), outputs.cols()));
      std::erase_if(list, [&](const kernels::ScoredItem& item) {
        return std::ranges::binary_search(users[u].seen, item.id);
      });
      const auto needed = std::bit_ceil(static_cast<std::uint64_t>(beam + std::ssize(users[u].seen)));
      const std::int64_t wide = std::min(kWidestAgain, static_cast<std::int64_t>(needed));
      if (is_short(list, users[u]) && wide > beam) wider[wide].push_back(u);
    }
  };
  for (const auto& [beam, turn] : turns) {
    search(beam, turn);
    bad_ids_.add(pass_.batch().bad_ids);
  }
  for (const auto& [beam, turn] : std::exchange(wider, {})) {
    const auto at_once = std::max<std::int64_t>(1, std::ssize(users) * own.width / beam);
    for (std::int64_t first = 0; first < std::ssize(turn); first += at_once)
      search(beam,
             std::span(turn).subspan(static_cast<std::size_t>(first),
                                     static_cast<std::size_t>(std::min(at_once, std::ssize(turn) - first))));
  }
  Answers found;
  for (auto& [u, list] : lists) {
    if (users[u].top > 0) list.resize(std::min(list.size(), static_cast<std::size_t>(users[u].top)));
    found.lists.push_back(std::move(list));
    found.user.push_back(static_cast<std::int64_t>(u));
  }
  return found;
}

std::vector<Retriever::List> Retriever::top(const CatalogueQueryList& queries, std::int64_t k) {
  return catalogue_top(*blocks_, queries, std::min(k, std::ssize(items_)), one_rank());
}

std::vector<float> Retriever::item_vectors() {
  return catalogue_vectors(catalogue_);
}

}  // namespace hstu
