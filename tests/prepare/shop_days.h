// The log of a shop over days, and its schema.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/files.h"
#include "hstu/base/random.h"
#include "hstu/events/schema.h"

namespace hstu {

inline constexpr std::int64_t kDay = 86'400, kFirstDay = 1'700'000'000;

inline Schema shop_schema() {
  Schema schema;
  schema.name = "shop";
  schema.files = {"*.csv"};
  schema.user = "user";
  schema.time = "at";
  schema.item = "item";
  schema.time_unit = TimeUnit::kSeconds;
  schema.actions = {{.name = "bought", .bit = 1, .when = {parse_condition("kind = b")}},
                    {.name = "viewed", .bit = 2, .when = {parse_condition("kind = v")}}};
  schema.label = "bought";
  schema.pools = {"bought", "viewed"};
  schema.csv.emplace();
  schema.attributes = {{.name = "brand", .value_column = "brand", .file = "", .item_column = ""}};
  schema.context = {{.name = "device", .column = "device"}};
  schema.keep_names = {"user", "item"};
  return schema;
}

struct Row {
  std::int64_t day = 0;  // of the log that has it
  std::int64_t time = 0;
  std::string user, item, kind, device;
};

// One in `late` events comes a day or more after its time; 0: none.
inline std::vector<Row> random_log(std::uint64_t seed, std::int64_t days, std::uint64_t late) {
  RandomStream random{.key = seed, .index = 0};
  std::vector<Row> rows;
  for (std::int64_t day = 0; day < days; ++day) {
    for (int event = 0; event < 150; ++event) {
      Row row;
      row.day = day;
      row.time = kFirstDay + day * kDay + static_cast<std::int64_t>(random.below(900)) * 90;
      if (late > 0 && random.below(late) == 0) row.time -= kDay * static_cast<std::int64_t>(random.below(3));
      // Users and items of later days differ: some are new, some never come again.
      row.user = fmt::format("u{}", random.below(20) + static_cast<std::uint64_t>(day) * 3);
      row.item = fmt::format("i{}", random.below(30) + static_cast<std::uint64_t>(day) * 5);
      row.kind = random.below(3) == 0 ? "b" : "v";
      row.device = fmt::format("d{}", random.below(2 + static_cast<std::uint64_t>(day)));
      rows.push_back(row);
    }
  }
  return rows;
}

// The rows of days [first, end), one file for each day.
inline void write_log(const Path& folder, const std::vector<Row>& rows, std::int64_t first,
                      std::int64_t end) {
  std::filesystem::create_directories(folder);
  for (std::int64_t day = first; day < end; ++day) {
    std::string text = "user,item,at,kind,device,brand\n";
    for (const Row& row : rows) {
      if (row.day != day) continue;
      text += fmt::format("{},{},{},{},{},brand of {}\n", row.user, row.item, row.time, row.kind, row.device,
                          row.item);
    }
    write_file(folder / fmt::format("day-{}.csv", day), text);
  }
}

}  // namespace hstu
