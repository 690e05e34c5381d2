// Answers of an index: rejected, or compared with a recall between 0 and 1, which is 1 for a table without
// repeated items against itself.
#include "fuzz/harness.h"
#include "hstu/predict/ann_recall.h"

// Input: answers, a line "--", exact lists.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  const std::string text(fuzz::text_of(data, size));
  const std::size_t middle = text.find("\n--\n");
  if (middle == std::string::npos) return 0;
  return fuzz::accept_or_refuse([&] {
    const Path folder = fuzz::fresh_folder();
    const Path answers = fuzz::plain_file(folder / "answers.csv", text.substr(0, middle + 1));
    const Path exact = fuzz::plain_file(folder / "exact.csv", text.substr(middle + 4));
    const AnnRecall found = ann_recall({.answers = answers, .exact = exact});
    require(found.lists >= 1 && found.without_answer <= found.lists, "not as many lists");
    for (const double recall : found.recall) require(recall >= 0 && recall <= 1, "a recall of {}", recall);
    const AnnRecall same = ann_recall({.answers = exact, .exact = exact, .cutoffs = found.cutoffs});
    for (const double recall : same.recall) require(recall <= 1 && same.without_answer == 0, "not itself");
  });
}
