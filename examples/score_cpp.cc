// Items for users from several threads at once, in C++: example_score_cpp EXPORT DATASET K USER.. prints the
// first K items of each user.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "hstu/score.h"

namespace {

void check(hstu_score_status status) {
  if (status != HSTU_SCORE_OK) throw std::runtime_error(hstu_score_error());
}

struct Close {
  void operator()(hstu_scorer* scorer) const { hstu_score_close(scorer); }
};
using Scorer = std::unique_ptr<hstu_scorer, Close>;

Scorer open(const char* model, const char* data) {
  hstu_score_options options;
  hstu_score_options_init(&options);
  options.model = model;
  options.data = data;
  options.cache_bytes = std::int64_t{64} << 20;
  hstu_scorer* scorer = nullptr;
  check(hstu_score_open(&options, &scorer));
  return Scorer(scorer);
}

struct List {
  std::vector<std::int64_t> items;
  std::vector<float> scores;
  std::int64_t found = 0;
  std::string failure;
};

List find_items(hstu_scorer* scorer, std::int64_t user, std::int64_t k) {
  List list{std::vector<std::int64_t>(static_cast<std::size_t>(k)),
            std::vector<float>(static_cast<std::size_t>(k)),
            0,
            {}};
  hstu_score_request request;
  hstu_score_request_init(&request);
  request.user = user;  // its events are those of the dataset
  if (hstu_score_top(scorer, &request, 1, k, 0, list.items.data(), list.scores.data(), &list.found) !=
      HSTU_SCORE_OK)
    list.failure = hstu_score_error();
  return list;
}

void run(int argc, char** argv) {
  const Scorer scorer = open(argv[1], argv[2]);
  const std::int64_t k = std::atoll(argv[3]);
  std::vector<std::int64_t> users;
  for (int i = 4; i < argc; ++i) users.push_back(std::atoll(argv[i]));
  std::vector<List> lists(users.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < users.size(); ++i)
    threads.emplace_back([&, i] { lists[i] = find_items(scorer.get(), users[i], k); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (!lists[i].failure.empty()) throw std::runtime_error(lists[i].failure);
    for (std::int64_t r = 0; r < lists[i].found; ++r) {
      const auto at = static_cast<std::size_t>(r);
      std::printf("%lld,%lld,%.9g\n", static_cast<long long>(users[i]),
                  static_cast<long long>(lists[i].items[at]), static_cast<double>(lists[i].scores[at]));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s MODEL DATASET K USER..\n", argv[0]);
    return 2;
  }
  try {
    run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "score_cpp: %s\n", e.what());
    return 1;
  }
  return 0;
}
