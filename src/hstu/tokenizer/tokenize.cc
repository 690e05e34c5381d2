#include "hstu/tokenizer/tokenize.h"

#include "hstu/base/clock.h"
#include "hstu/base/random.h"
#include "hstu/codes/codes_file.h"

namespace hstu {
namespace {

// Every code of every level is drawn alike. All items are at one distance from all codes.
TokenizedItems random_codes(const ItemVectors& vectors, const ResidualKMeansOptions& options) {
  TokenizedItems result;
  result.codes.items = vectors.items;
  result.codes.sizes.assign(static_cast<std::size_t>(options.levels), options.codes);
  RandomStream random{derive_key(options.seed, "random codes")};
  for (std::size_t i = 0; i < vectors.items.size() * result.codes.sizes.size(); ++i)
    result.codes.codes.push_back(
        static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(options.codes))));
  result.last_centers.assign(static_cast<std::size_t>(options.codes), 0);
  result.last_residuals.assign(vectors.items.size(), 0);
  result.error = 1;
  return result;
}

TokenizedItems tokenized(const ItemVectors& vectors, const TokenizeOptions& options) {
  switch (options.method) {
    case TokenizeMethod::residual_kmeans:
      return residual_kmeans(vectors, options.sizes);
    case TokenizeMethod::rq_vae:
      return rq_vae(vectors, options.sizes, options.rq_vae);
    case TokenizeMethod::random:
      return random_codes(vectors, options.sizes);
  }
  fail("not a method");
}

}  // namespace

Json tokenize(const TokenizeOptions& options) {
  StagedFolder staged(options.output);
  const ItemVectors vectors = read_item_vectors(options.vectors, options.ids);
  check(vectors.size() >= 1, "{}: there are no vectors", options.vectors.string());
  const Clock::time_point start = Clock::now();
  TokenizedItems items = tokenized(vectors, options);
  const CodeStatistics before = code_statistics(items.codes);
  const std::int64_t changed = resolve_collisions(items, options.collisions);
  Json method{{"name", word_of(kTokenizeMethods, options.method)},
              {"vectors", options.vectors.string()},
              {"levels", options.sizes.levels},
              {"codes", options.sizes.codes},
              {"seed", options.sizes.seed},
              {"collisions", word_of(kCollisions, options.collisions)}};
  write_codes(staged.path(), items.codes, method);
  staged.commit();
  Json result = to_json(code_statistics(items.codes));
  result["error"] = items.error;
  result["colliding_items_before"] = before.colliding;
  result[options.collisions == Collisions::extra ? "extra_codes" : "items_changed"] = changed;
  result["seconds"] = seconds_since(start);
  return result;
}

}  // namespace hstu
