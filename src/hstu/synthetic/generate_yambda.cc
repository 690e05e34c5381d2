#include "hstu/synthetic/generate_yambda.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <future>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/progress.h"
#include "hstu/base/text.h"
#include "hstu/base/threads.h"
#include "hstu/synthetic/generate_catalogue.h"
#include "hstu/synthetic/generate_tables.h"
#include "hstu/synthetic/generate_truth.h"
#include "hstu/synthetic/generate_user.h"

namespace hstu {
namespace {

// Users per row group: about a million events, for any number of threads.
std::int64_t users_per_block(const GenerateOptions& options) {
  const double mean = options.events_per_user_day * static_cast<double>(options.days);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>((1 << 20) / mean), 1, 1 << 16);
}

}  // namespace

Truth generate_yambda(const GenerateOptions& options) {
  check_options(options);
  StagedFolder folder(options.output);
  if (options.threads > 0) set_threads(options.threads);
  check_threads_start();

  const Catalogue catalogue(options);
  write_artist_mapping(folder.path() / "artist_item_mapping.parquet", catalogue);
  write_album_mapping(folder.path() / "album_item_mapping.parquet", catalogue);

  Progress progress("generate", options.users, "users");
  TruthKeeper keeper(options);
  MultiEventFile file(folder.path() / "multi_event.parquet");
  const std::int64_t block = users_per_block(options);
  // One block of users is written while the next one is generated.
  using Users = std::vector<std::vector<GeneratedEvent>>;
  std::array<Users, 2> blocks;
  for (Users& users : blocks) users.resize(static_cast<std::size_t>(std::min(block, options.users)));
  std::future<void> writing;
  const auto wait = [&](std::int64_t users) {
    if (!writing.valid()) return;
    writing.get();
    progress.advance_to(users, fmt::format("{} events", with_separators(keeper.counts().events)));
  };
  for (std::int64_t done = 0; done < options.users; done += block) {
    const std::int64_t count = std::min(block, options.users - done);
    const auto first_uid = static_cast<std::uint32_t>(done + 1);
    Users& users = blocks[static_cast<std::size_t>(done / block % 2)];
    parallel_blocks(count, 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t u = begin; u < end; ++u) {
        generate_user(options, catalogue, first_uid + static_cast<std::uint32_t>(u),
                      users[static_cast<std::size_t>(u)]);
      }
    });
    wait(done);
    const std::span ready(users.data(), static_cast<std::size_t>(count));
    writing = std::async(std::launch::async, [&, first_uid, ready] {
      for (std::size_t u = 0; u < ready.size(); ++u) {
        keeper.add_user(first_uid + static_cast<std::uint32_t>(u), ready[u]);
      }
      file.write(catalogue, first_uid, ready);
    });
  }
  wait(options.users);
  file.close();
  const Truth truth = keeper.finish();
  write_last_day(folder.path() / "truth_last_day.parquet", catalogue, keeper.last_day());
  write_truth_json(folder.path() / "truth.json", options, truth);
  folder.commit();
  progress.finish(fmt::format("{} events", with_separators(truth.counts.events)));
  return truth;
}

}  // namespace hstu
