#include "hstu/comm/communicator.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hstu/comm/transport.h"

namespace hstu {
namespace {

// What a rank brings to a split.
struct SplitRequest {
  std::int64_t color = 0, offer = 0;
  std::array<char, 16> name{};
};

// Throws the error of a group that could not be joined as one of this rank in that group.
[[noreturn]] void rethrow_as(const std::string& rank) {
  try {
    throw;
  } catch (const EndedRank& error) {
    throw EndedRank(fmt::format("{}: {}", rank, error.what()));
  } catch (const Error& error) {
    fail("{}: {}", rank, error.what());
  }
}

}  // namespace

std::unique_ptr<Communicator> Communicator::split(int color, std::string_view name) {
  std::vector<SplitRequest> requests(static_cast<std::size_t>(size()));
  SplitRequest mine{color, offer(), {}};
  name.copy(mine.name.data(), mine.name.size() - 1);
  {
    const Collective split(*this, "split", sizeof mine);
    gather(&mine, std::vector<std::int64_t>(requests.size(), sizeof mine), requests.data());
  }
  std::vector<int> members, world_ranks;
  std::vector<std::int64_t> offers;
  for (int r = 0; r < size(); ++r) {
    const SplitRequest &request = requests[static_cast<std::size_t>(r)], &first = requests.front();
    require(request.color >= 0 && request.name == first.name,
            "split: rank {} asks for {} group {}, rank 0 for {} group {}", world_rank(r), request.name.data(),
            request.color, first.name.data(), first.color);
    offers.push_back(request.offer);
    if (request.color != color) continue;
    members.push_back(r);
    world_ranks.push_back(world_rank(r));
  }
  const std::string text =
      fmt::format(" of {} group {} (ranks {})", name, color, fmt::join(world_ranks, ", "));
  std::unique_ptr<Communicator> group;
  try {
    group = join(members, offers);
  } catch (const Error&) {
    rethrow_as(fmt::format("rank {}{}", world_rank(rank()), text));
  }
  group->world_ranks_ = std::move(world_ranks);
  group->group_text_ = text;
  group->patience_ = patience_;
  group->enter(name);
  return group;
}

}  // namespace hstu
