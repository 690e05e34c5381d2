#include "hstu/tokenizer/tokenize.h"

#include <map>
#include <string>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/random.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/codes/codes_file.h"

namespace hstu {
namespace {

// Every code of every level is drawn alike, those of items that come later by their ids. All items are at one
// distance from all codes.
TokenizedItems random_codes(const ItemVectors& vectors, const ResidualKMeansOptions& options, bool by_id) {
  TokenizedItems result;
  result.codes.items = vectors.items;
  result.codes.sizes.assign(static_cast<std::size_t>(options.levels), options.codes);
  RandomStream random{derive_key(options.seed, "random codes")};
  for (const std::int64_t item : vectors.items) {
    if (by_id) random = RandomStream{derive_key(options.seed, fmt::format("random codes of {}", item))};
    for (std::int64_t l = 0; l < options.levels; ++l)
      result.codes.codes.push_back(
          static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(options.codes))));
  }
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
      return random_codes(vectors, options.sizes, false);
  }
  fail("not a method");
}

constexpr const char* kCodebooks = "codebooks.safetensors";

void write_codebooks(const Path& path, const std::map<std::string, Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : tensors) specs.push_back({name, DType::f32, tensor.shape()});
  SafetensorsWriter file(path, specs);
  for (const auto& [name, tensor] : tensors) file.write(tensor);
  file.close();
}

Json describe(const ItemCodes& codes, double error, Collisions rule) {
  const CodeStatistics statistics = code_statistics(codes);
  if (statistics.colliding > 0 && rule != Collisions::keep)
    print_note(
        "WARNING: {} items share their codes with others, at most {} of them one tuple, because there are "
        "more "
        "of them than codes of the last level: lists cannot tell them apart: take more --codes or --levels, "
        "or "
        "--collisions extra\n",
        with_separators(statistics.colliding), with_separators(statistics.largest_group));
  Json result = to_json(statistics);
  result["error"] = error;
  return result;
}

// The options that the folder was made with.
TokenizeOptions options_of_folder(const TokenizeOptions& asked, const Json& method) {
  const std::string source = (asked.append / "manifest.json").string();
  TokenizeOptions options = asked;
  try {
    options.method = parse_word(kTokenizeMethods, method.at("name").get<std::string>(), source);
    options.collisions = parse_word(kCollisions, method.at("collisions").get<std::string>(), source);
    method.at("levels").get_to(options.sizes.levels);
    method.at("codes").get_to(options.sizes.codes);
    method.at("seed").get_to(options.sizes.seed);
  } catch (const Json::exception&) {
    fail("{}: it does not say how its codes were made: hstu tokenize makes codes for all items", source);
  }
  return options;
}

TokenizedItems tokenized_as(const ItemVectors& vectors, const TokenizeOptions& options) {
  if (options.method == TokenizeMethod::random) return random_codes(vectors, options.sizes, true);
  const Path path = options.append / kCodebooks;
  check(std::filesystem::exists(path),
        "{}: missing: the codes were made by an earlier version, and others cannot be made as they were: "
        "hstu tokenize makes codes for all items, for a new run",
        path.string());
  const SafetensorsFile codebooks(path);
  return options.method == TokenizeMethod::rq_vae
             ? rq_vae_codes(vectors, options.sizes, options.rq_vae, codebooks)
             : residual_codes(vectors, codebooks);
}

// The vectors of items without codes.
ItemVectors without_codes(const ItemVectors& vectors, const ItemCodes& known) {
  ItemVectors others{.items = {}, .values = {}, .width = vectors.width};
  for (std::size_t i = 0; i < vectors.items.size(); ++i) {
    if (known.find(vectors.items[i])) continue;
    others.items.push_back(vectors.items[i]);
    const auto from = vectors.values.begin() + static_cast<std::ptrdiff_t>(i) * vectors.width;
    others.values.insert(others.values.end(), from, from + vectors.width);
  }
  return others;
}

Json append(const TokenizeOptions& asked) {
  const Clock::time_point start = Clock::now();
  const ItemCodes known = read_codes(asked.append);
  const Json method = codes_method(asked.append);
  const TokenizeOptions options = options_of_folder(asked, method);
  const ItemVectors all = read_item_vectors(options.vectors, options.ids),
                    vectors = without_codes(all, known);
  double error = 0;
  if (vectors.size() > 0) {
    TokenizedItems items = tokenized_as(vectors, options);
    resolve_collisions(items, known, options.collisions);
    append_codes(options.append, items.codes, method);
    error = items.error;
  }
  Json result = describe(read_codes(options.append), error, options.collisions);
  result["items_appended"] = vectors.size();
  result["items_kept"] = all.size() - vectors.size();
  result["seconds"] = seconds_since(start);
  return result;
}

}  // namespace

Json tokenize(const TokenizeOptions& options) {
  if (!options.append.empty()) return append(options);
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
  if (!items.codebooks.empty()) write_codebooks(staged.path() / kCodebooks, items.codebooks);
  staged.commit();
  Json result = describe(items.codes, items.error, options.collisions);
  result["colliding_items_before"] = before.colliding;
  result[options.collisions == Collisions::extra ? "extra_codes" : "items_changed"] = changed;
  result["seconds"] = seconds_since(start);
  return result;
}

}  // namespace hstu
