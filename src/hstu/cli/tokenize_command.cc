#include <memory>
#include <string>

#include <fmt/format.h>

#include "hstu/cli/commands.h"
#include "hstu/tokenizer/tokenize.h"

namespace hstu {

void add_tokenize_command(CLI::App& app) {
  struct Words {
    TokenizeOptions options;
    std::string method = "residual-kmeans", collisions = "reassign";
    int threads = 0;
  };
  auto words = std::make_shared<Words>();
  TokenizeOptions& o = words->options;
  constexpr std::int64_t kMostLevels = 8, kMostCodes = 1 << 20;
  CLI::App* const command = app.add_subcommand("tokenize", "Make semantic ids of vectors of items");
  command
      ->add_option("--vectors", o.vectors,
                   "vectors (V, D): .npy, .safetensors, or a folder of hstu export --vectors")
      ->required()
      ->type_name("FILE");
  command->add_option("--ids", o.ids, "their ids (V), .npy of int64 or int32; default: 0 to V - 1")
      ->type_name("FILE");
  CLI::Option* const output =
      command->add_option("--output", o.output, "new folder of codes")->type_name("DIR");
  CLI::Option* const append =
      command
          ->add_option(
              "--append", o.append,
              "a folder of codes: items that it does not have get codes as the others did, which keep "
              "theirs")
          ->type_name("DIR")
          ->excludes(output);
  const std::size_t shared = command->get_options().size();
  command->add_option("--method", words->method, list_of(kTokenizeMethods))->capture_default_str();
  command->add_option("--levels", o.sizes.levels, "codes of an item")
      ->check(CLI::Range(std::int64_t{1}, kMostLevels))
      ->capture_default_str();
  command->add_option("--codes", o.sizes.codes, "codes of a level")
      ->check(CLI::Range(std::int64_t{1}, kMostCodes))
      ->capture_default_str();
  command
      ->add_option("--collisions", words->collisions,
                   "items with equal codes: keep them; number them in an extra level; or reassign the last "
                   "level, so that few change, and by little")
      ->capture_default_str();
  command->add_option("--iterations", o.sizes.iterations, "of k-means at each level, at most")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--epochs", o.rq_vae.epochs, "of rq-vae over all vectors")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--seed", o.sizes.seed, "of all draws")->capture_default_str();
  const std::vector<CLI::Option*> all = command->get_options();
  for (std::size_t i = shared; i < all.size(); ++i) append->excludes(all[i]);
  command->add_option("--threads", words->threads, "0: all cores; the codes do not depend on it")
      ->check(CLI::Range(0, kMostThreads));
  command->footer(
      "Prints one JSON object: for each level its codes, those in use and their perplexity; the different\n"
      "tuples, the items that share one, and the relative error of the vectors that codes stand for.\n"
      "docs/semantic-ids.md has the next steps.\n"
      "Examples:\n"
      "  hstu export RUN --vectors VECTORS && hstu tokenize --vectors VECTORS --output CODES\n"
      "  hstu tokenize --vectors items.npy --ids ids.npy --levels 3 --codes 256 --output CODES\n"
      "  hstu tokenize --vectors new.npy --ids new_ids.npy --append CODES");
  command->callback([words] {
    if (words->options.output.empty() && words->options.append.empty())
      fail_usage("--output names a new folder of codes, or --append one that gets more: give one of them");
    use_threads(words->threads);
    words->options.method = parse_word(kTokenizeMethods, words->method, "--method");
    words->options.collisions = parse_word(kCollisions, words->collisions, "--collisions");
    fmt::print("{}\n", tokenize(words->options).dump(2));
  });
}

}  // namespace hstu
