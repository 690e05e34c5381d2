// The log of a shop as a user might have it: CSV, UUIDs for users, texts for items. There is something to
// learn.
#pragma once

#include <cstdint>

#include "hstu/base/files.h"

namespace hstu {

enum class ShopFormat { csv, csv_gz };

struct ShopOptions {
  std::int64_t events = 0;
  std::int64_t users = 0;  // 0: an eightieth of the events, at least 10
  std::int64_t items = 0;  // 0: a two-hundredth of the events, between 50 and 200,000
  std::int64_t days = 30;
  std::uint64_t seed = 1;
  ShopFormat format = ShopFormat::csv_gz;
  Path output;
};

struct ShopCounts {
  std::int64_t events = 0, users = 0, items = 0, bought = 0, files = 0;
};

// Writes the folder options.output, completely or not at all:
//
//   events-00000.csv.gz, ...   customer, product, at, kind, seconds, category, device; in the order of time
//   schema.toml                for hstu prepare csv --schema
//
// Every event is a product that a customer was shown: kind is "buy" or "view". The probability of a buy
// depends on the product's quality, on whether its category is one of the two that the customer likes, and on
// the device. An event is a function of (options, its number). Throws UsageError for options out of range and
// for an existing output.
ShopCounts generate_shop(const ShopOptions& options);

}  // namespace hstu
