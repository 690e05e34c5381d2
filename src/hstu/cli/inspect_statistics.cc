#include "hstu/cli/inspect_statistics.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/starting/pool_profile.h"

namespace hstu {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::vector<std::vector<std::string>> each_alone(const std::vector<std::string>& pools) {
  std::vector<std::vector<std::string>> lists;
  for (const std::string& pool : pools) lists.push_back({pool});
  return lists;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace

Json dataset_statistics(const Path& path) {
  try {
    const Dataset dataset(path);
    const UserProfile users = profile_users(dataset);
    Json json{{"events_of_a_user",
               {{"median", users.median}, {"of_nine_in_ten", users.long_one}, {"most", users.most}}}};
    json["pools"] = Json::array();
    for (const PoolProfile& pool : profile_pools(dataset, each_alone(dataset.manifest().pools), 0)) {
      json["pools"].push_back(
          {{"pool", pool.pool}, {"events", pool.events}, {"users", pool.users}, {"earlier", pool.earlier}});
    }
    return json;
  } catch (const Error& error) {
    return {{"problem", error.what()}};
  }
}

std::string statistics_view(const Json& statistics) {
  if (statistics.contains("problem"))
    return fmt::format("{:<14} {}\n", "columns", statistics["problem"].get<std::string>());
  const Json& users = statistics["events_of_a_user"];
  const auto count = [&](const char* key) { return with_separators(users.value(key, std::int64_t{0})); };
  std::string text = fmt::format("{:<14} median {}, at most {} in 9 of 10 users, {} in all\n\n",
                                 "events of one", count("median"), count("of_nine_in_ten"), count("most"));
  Rows rows{{"pool", "events", "users with one", "before an event to rank"}};
  for (const Json& pool : statistics["pools"]) {
    rows.push_back({pool.value("pool", ""), with_separators(pool.value("events", std::int64_t{0})),
                    percent(pool.value("users", 0.0)), fmt::format("{:.1f}", pool.value("earlier", 0.0))});
  }
  return text + table(rows);
}

std::string histories_view(const RunOptions& options) {
  try {
    const Dataset dataset(options.data.path);
    const DataOptions& data = options.data.options;
    const std::vector<std::string>& pools = data.pools.empty() ? dataset.manifest().pools : data.pools;
    const auto q = static_cast<std::int64_t>(pools.size());
    const bool by_pool = data.strategy == HistoryStrategy::interleaved && q > 0;
    const std::int64_t room =
        by_pool ? std::max<std::int64_t>(1, data.history_length / q) : data.history_length;
    Rows rows{{"pool of histories", "room", "earlier events", "full"}};
    for (const PoolProfile& pool : profile_pools(
             dataset, by_pool ? each_alone(pools) : std::vector<std::vector<std::string>>(1, pools), room)) {
      rows.push_back(
          {pool.pool, with_separators(room), fmt::format("{:.1f}", pool.earlier), percent(pool.full)});
    }
    return table(rows);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace hstu
