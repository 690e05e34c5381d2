#include "hstu/synthetic/generate_shop.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include <arrow/io/compressed.h>
#include <arrow/io/file.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/base/random.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::int64_t kFileEvents = 1'000'000;
constexpr std::int64_t kFirstDay = 1'714'521'600;  // 2024-05-01
constexpr std::int64_t kMillisecondsPerDay = 86'400'000;
constexpr std::array kCategories = {"shoes", "hats",  "coats", "books",
                                    "games", "tools", "lamps", "garden, patio"};
constexpr std::array kDevices = {"phone", "tablet", "desktop"};
constexpr std::array kColours = {"red", "blue", "green", "grey"};

constexpr const char* kSchema = R"(name = "shop"
files = ["events-*"]
user = "customer"
item = "product"
time = "at"
keep_names = ["item"]
label = "bought"
pools = ["bought", "viewed"]

[[action]]
name = "bought"
bit = 1
when = ["kind = buy"]

[[action]]
name = "viewed"
bit = 2
when = ["kind = view", "seconds >= 5"]

[[action]]
name = "skipped"
bit = 4
when = ["kind = view", "seconds < 5"]

[[attribute]]
name = "category"
column = "category"

[[context]]
name = "device"

[allowed_texts]
kind = ["buy", "view"]
)";

// A text file, compressed or not.
class TextFile {
 public:
  TextFile(Path path, ShopFormat format) : path_(std::move(path)) {
    output_ = value_or_fail(arrow::io::FileOutputStream::Open(path_.string()));
    if (format != ShopFormat::csv_gz) return;
    constexpr int kFast = 1;
    codec_ = value_or_fail(arrow::util::Codec::Create(arrow::Compression::GZIP, kFast));
    output_ = value_or_fail(arrow::io::CompressedOutputStream::Make(codec_.get(), output_));
  }

  void write(const std::string& text) { check_status(output_->Write(text)); }
  void close() { check_status(output_->Close()); }

 private:
  void check_status(const arrow::Status& status) const {
    check(status.ok(), "cannot write {}: {}", path_.string(), status.ToString());
  }
  template <typename T>
  T value_or_fail(arrow::Result<T> result) const {
    check_status(result.status());
    return std::move(result).ValueUnsafe();
  }

  Path path_;
  std::unique_ptr<arrow::util::Codec> codec_;
  std::shared_ptr<arrow::io::OutputStream> output_;
};

RandomStream stream_of(const ShopOptions& o, std::string_view purpose, std::int64_t number) {
  return {.key = derive_key(o.seed, purpose) ^ mix64(static_cast<std::uint64_t>(number))};
}

// A random UUID (version 4), the same for all events of the customer.
std::string uuid_of(RandomStream& random) {
  const std::uint64_t high = random.bits(), low = random.bits();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xfff,
                     0x8000 | ((low >> 48) & 0x3fff), low & 0xffffffffffff);
}

// "2024-05-01T00:00:00.250Z", `at` milliseconds after the beginning of the log.
std::string iso_text(std::int64_t at) {
  const std::chrono::sys_days day{std::chrono::days(kFirstDay / 86'400 + at / kMillisecondsPerDay)};
  const std::chrono::year_month_day date(day);
  const std::int64_t rest = at % kMillisecondsPerDay, seconds = rest / 1'000;
  return fmt::format("{}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), seconds / 3'600,
                     seconds / 60 % 60, seconds % 60, rest % 1'000);
}

struct Shop {
  std::string row;  // the last event's line
  std::int64_t bought = 0;

  void add(const ShopOptions& o, std::int64_t number) {
    RandomStream event = stream_of(o, "event", number);
    const auto user = static_cast<std::int64_t>(event.below(static_cast<std::uint64_t>(o.users)));
    RandomStream customer = stream_of(o, "customer", user);
    const std::string name = uuid_of(customer);
    const std::uint64_t first = customer.below(kCategories.size());
    const std::uint64_t second = (first + 1 + customer.below(kCategories.size() - 1)) % kCategories.size();

    // Popular products are shown more often; half of the events show a category that the customer likes.
    const double popular = event.uniform();
    auto item = static_cast<std::int64_t>(popular * popular * static_cast<double>(o.items));
    const std::uint64_t wanted = event.below(2) == 0 ? first : second;
    const auto count = static_cast<std::int64_t>(kCategories.size());
    if (event.below(2) == 0)
      item = std::min(item / count * count + static_cast<std::int64_t>(wanted), o.items - 1);
    const auto category = static_cast<std::uint64_t>(item % count);
    RandomStream product = stream_of(o, "product", item);
    const double quality = product.normal();

    const bool liked = category == first || category == second;
    const std::uint64_t device = event.below(kDevices.size());
    const double logit = -2.2 + 2.4 * (liked ? 1 : 0) + 0.8 * quality + (device == 2 ? 0.4 : 0.0);
    const bool buys = event.uniform() < 1 / (1 + std::exp(-logit));
    const auto seconds = static_cast<std::int64_t>(event.uniform() * (liked ? 40 : 12));
    const std::int64_t at = o.days * kMillisecondsPerDay / o.events * number +
                            static_cast<std::int64_t>(event.below(
                                1 + static_cast<std::uint64_t>(o.days * kMillisecondsPerDay / o.events)));
    bought += buys ? 1 : 0;
    append(name, item, at, buys, seconds, kCategories[category], kDevices[device]);
  }

 private:
  void append(const std::string& name, std::int64_t item, std::int64_t at, bool buys, std::int64_t seconds,
              std::string_view category, std::string_view device) {
    row +=
        fmt::format("{},\"{} no. {}, {}\",{},{},{},\"{}\",{}\n", name, category.substr(0, category.find(',')),
                    item, kColours[static_cast<std::size_t>(item) / kCategories.size() % kColours.size()],
                    iso_text(at), buys ? "buy" : "view", seconds, category, device);
  }
};

ShopOptions completed(ShopOptions o) {
  const auto check_range = [](const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high)
      fail_usage("{} is {}: expected a value from {} to {}", option, value, low, high);
  };
  check_range("--events", o.events, 1, 10'000'000'000);
  check_range("--users", o.users, 0, 1'000'000'000);
  check_range("--items", o.items, 0, 1'000'000'000);
  check_range("--days", o.days, 1, 3'650);
  if (o.output.empty()) fail_usage("--output is empty: name a folder that does not exist yet");
  if (o.users == 0) o.users = std::max<std::int64_t>(10, o.events / 80);
  if (o.items == 0) o.items = std::clamp<std::int64_t>(o.events / 200, 50, 200'000);
  return o;
}

}  // namespace

ShopCounts generate_shop(const ShopOptions& options) {
  const ShopOptions o = completed(options);
  StagedFolder folder(o.output);
  Progress progress("generate", o.events, "events");
  ShopCounts counts{.events = o.events, .users = o.users, .items = o.items};
  Shop shop;
  for (std::int64_t first = 0; first < o.events; first += kFileEvents, ++counts.files) {
    const char* const ending = o.format == ShopFormat::csv_gz ? "csv.gz" : "csv";
    TextFile file(folder.path() / fmt::format("events-{:05}.{}", counts.files, ending), o.format);
    file.write("customer,product,at,kind,seconds,category,device\n");
    constexpr std::int64_t kBlock = 4'096;
    for (std::int64_t number = first; number < std::min(first + kFileEvents, o.events); ++number) {
      shop.add(o, number);
      if (number % kBlock != 0) continue;
      file.write(std::exchange(shop.row, {}));
      progress.advance_to(number);
    }
    file.write(std::exchange(shop.row, {}));
    file.close();
  }
  counts.bought = shop.bought;
  write_file(folder.path() / "schema.toml", kSchema);
  folder.commit();
  progress.advance_to(o.events);
  progress.finish();
  return counts;
}

}  // namespace hstu
