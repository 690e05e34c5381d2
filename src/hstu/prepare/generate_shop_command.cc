#include "hstu/prepare/generate_shop_command.h"

#include <memory>
#include <string>

#include <fmt/format.h>

#include "hstu/base/choice.h"
#include "hstu/base/text.h"
#include "hstu/synthetic/generate_shop.h"

namespace hstu {
namespace {

constexpr Choice<ShopFormat> kShopFormats[] = {{"csv", ShopFormat::csv}, {"csv.gz", ShopFormat::csv_gz}};

struct ShopWords {
  ShopOptions options;
  std::string format = word_of(kShopFormats, ShopFormat::csv_gz);
};

void run_shop(ShopWords& words) {
  words.options.format = parse_word(kShopFormats, words.format, "--format");
  const ShopCounts counts = generate_shop(words.options);
  const double percent = 100.0 * static_cast<double>(counts.bought) / static_cast<double>(counts.events);
  fmt::print("{}",
             table({{"events", fmt::format("{} in {} files", with_separators(counts.events), counts.files)},
                    {"customers", with_separators(counts.users)},
                    {"products", with_separators(counts.items)},
                    {"bought", fmt::format("{} ({:.1f} %)", with_separators(counts.bought), percent)},
                    {"next", fmt::format("hstu prepare csv --schema {0}/schema.toml --input {0} --output "
                                         "DATASET",
                                         words.options.output.string())}}));
}

}  // namespace

void add_generate_shop_command(CLI::App& generate) {
  CLI::App* const shop = generate.add_subcommand(
      "shop",
      "Write the log of a shop in CSV: customers are UUIDs, products and categories texts.\n"
      "A customer buys good products of the two categories that the customer likes.\n"
      "The output has a schema file for hstu prepare csv.");
  shop->footer(
      "Example:\n"
      "  hstu generate shop --events 200000 --output logs\n"
      "  hstu prepare csv --schema logs/schema.toml --input logs --output dataset\n"
      "The same options give the same bytes. docs/own-data.md continues the example.");
  const auto words = std::make_shared<ShopWords>();
  ShopOptions& o = words->options;
  shop->add_option("--events", o.events, "Number of events")->required();
  shop->add_option("--output", o.output, "Folder to write; must not exist yet")->required();
  shop->add_option("--users", o.users, "Number of customers; 0: an eightieth of the events")
      ->capture_default_str();
  shop->add_option("--items", o.items, "Number of products; 0: from 50 to 200,000, by the number of events")
      ->capture_default_str();
  shop->add_option("--days", o.days, "Length of the log in days")->capture_default_str();
  shop->add_option("--seed", o.seed, "Seed of the random numbers")->capture_default_str();
  shop->add_option("--format", words->format, "csv or csv.gz")
      ->capture_default_str()
      ->check(CLI::IsMember(words_of(kShopFormats)));
  shop->callback([words] { run_shop(*words); });
}

}  // namespace hstu
