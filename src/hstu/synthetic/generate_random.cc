#include "hstu/synthetic/generate_random.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/base/text.h"
#include "hstu/columns/parquet_file.h"

namespace hstu {
namespace {

constexpr std::size_t kRowGroup = std::size_t{1} << 20;

struct Columns {
  std::vector<std::int64_t> user, time, item, action, label, age, category;
  void clear() {
    for (auto* column : {&user, &time, &item, &action, &label, &age, &category}) column->clear();
  }
};

std::shared_ptr<arrow::Schema> arrow_schema() {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  for (const char* name : {"user", "time", "item", "action", "label", "user_age", "item_category_l1"})
    fields.push_back(arrow::field(name, arrow::int64()));
  return arrow::schema(fields);
}

void write(ParquetFile& file, Columns& c) {
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  for (const auto* column : {&c.user, &c.time, &c.item, &c.action, &c.label, &c.age, &c.category})
    arrays.push_back(arrow_array<arrow::Int64Type>(*column));
  file.write(arrays);
  c.clear();
}

// Each purpose has a stream of its own, so that other options do not change what it draws.
std::int64_t add_user(const RandomOptions& o, std::int64_t user, Columns& c) {
  const auto stream = [&](const char* purpose) {
    return RandomStream{mix64(derive_key(o.seed, purpose) + static_cast<std::uint64_t>(user))};
  };
  const auto below = [](RandomStream& random, std::int64_t end) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(end)));
  };
  RandomStream lengths = stream("length"), items = stream("item"), actions = stream("action"),
               labels = stream("label"), profile = stream("profile");
  const std::int64_t length = o.lengths.draw(lengths), age = below(profile, o.ages),
                     category = below(profile, o.categories);
  for (std::int64_t n = 0; n < length; ++n) {
    c.user.push_back(user);
    c.time.push_back(n);
    c.item.push_back(o.items.draw(items));
    c.action.push_back(below(actions, o.actions));
    c.label.push_back(below(labels, std::int64_t{1} << o.tasks));
    c.age.push_back(age);
    c.category.push_back(category);
  }
  return length;
}

// Every event is rankable and in the one pool. A model reads the column of labels; the action "last_task",
// the highest bit of a label, is there because a dataset names an action as its label.
std::string schema_text(const RandomOptions& o) {
  std::string text = R"(name = "random"
files = ["events.parquet"]
user = "user"
item = "item"
time = "time"
label = "last_task"
pools = ["event"]

[[action]]
name = "event"
bit = 1
when = ["label >= 0"]
)";
  text += fmt::format("\n[[action]]\nname = \"last_task\"\nbit = 2\nwhen = [\"label >= {}\"]\n",
                      std::int64_t{1} << (o.tasks - 1));
  for (const char* name : {"action", "label", "user_age", "item_category_l1"})
    text += fmt::format("\n[[context]]\nname = \"{}\"\n", name);
  return text;
}

void check_options(const RandomOptions& o) {
  const auto check_range = [](const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high)
      fail_usage("{} is {}: expected a value from {} to {}", option, value, low, high);
  };
  check_range("--users", o.users, 1, 1'000'000'000);
  check_range("--actions", o.actions, 1, 1'000'000'000);
  check_range("--tasks", o.tasks, 1, 62);
  check_range("--ages", o.ages, 1, 1'000'000'000);
  check_range("--categories", o.categories, 1, 1'000'000'000);
  check_distribution(o.lengths, "--lengths");
  check_distribution(o.items, "--item-ids");
  if (o.output.empty()) fail_usage("--output is empty: name a folder that does not exist yet");
}

}  // namespace

RandomCounts generate_random(const RandomOptions& asked) {
  RandomOptions options = asked;
  // Clamped, a third of the ids of a flat zipf would be the last one.
  if (options.items.kind == DistributionKind::zipf) options.items.kind = DistributionKind::bounded_zipf;
  check_options(options);
  StagedFolder folder(options.output);
  Progress progress("generate", options.users, "users");
  ParquetFile file(folder.path() / "events.parquet", arrow_schema());
  RandomCounts counts;
  Columns columns;
  for (std::int64_t user = 0; user < options.users; ++user) {
    const std::int64_t length = add_user(options, user, columns);
    counts.users += length > 0 ? 1 : 0;
    counts.events += length;
    counts.longest = std::max(counts.longest, length);
    if (columns.user.size() < kRowGroup) continue;
    write(file, columns);
    progress.advance_to(user + 1);
  }
  check(counts.events > 0, "--lengths gives no user an event: raise it");
  write(file, columns);
  file.close();
  write_file(folder.path() / "schema.toml", schema_text(options));
  folder.commit();
  progress.finish(fmt::format("{} events", with_separators(counts.events)));
  return counts;
}

}  // namespace hstu
