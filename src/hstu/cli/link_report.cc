#include "hstu/cli/link_report.h"

#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/json.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/comm/link_speeds.h"
#include "hstu/experiment/rank_device.h"

namespace hstu {
namespace {

constexpr std::int64_t kHostBytes = std::int64_t{1} << 25, kGpuBytes = std::int64_t{1} << 28;

struct Links {
  std::string name;  // "SLURM, the host's memory", "NCCL 2.27.3"
  std::int64_t bytes = 0;
  LinkSpeeds speeds;
};

std::vector<std::vector<std::string>> matrix(const LinkSpeeds& speeds) {
  std::vector<std::vector<std::string>> rows{{"GB/s from"}};
  for (int to = 0; to < speeds.ranks; ++to) rows[0].push_back(fmt::format("to {}", to));
  for (int from = 0; from < speeds.ranks; ++from) {
    rows.push_back({fmt::format("rank {}", from)});
    for (int to = 0; to < speeds.ranks; ++to)
      rows.back().push_back(from == to ? "-" : fmt::format("{:.2f}", speeds.between(from, to) * 1e-9));
  }
  return rows;
}

Json to_json(const Links& links) {
  Json json{{"through", links.name}, {"bytes", links.bytes}, {"bytes_per_second", Json::array()}};
  for (int from = 0; from < links.speeds.ranks; ++from) {
    Json row = Json::array();
    for (int to = 0; to < links.speeds.ranks; ++to) row.push_back(links.speeds.between(from, to));
    json["bytes_per_second"].push_back(std::move(row));
  }
  return json;
}

// Why there are none is a note.
std::vector<Links> measured(Communicator& comm, const std::string& launcher) {
  std::vector<Links> links{
      {"the host's memory, by " + launcher, kHostBytes, measure_links(comm, kHostBytes)}};
  try {
    const RunOptions defaults;
    const Device device = choose_device(defaults, comm).device;
    if (const auto transport = gpu_transport(defaults, device, comm))
      links.push_back({transport->name(), kGpuBytes, measure_links(comm, *transport, device, kGpuBytes)});
  } catch (const UsageError& error) {
    print_note("messages between GPUs are not measured: {}\n", error.what());
  }
  return links;
}

}  // namespace

void report_links(Communicator& comm, const std::string& launcher, bool json) {
  const std::vector<Links> all = measured(comm, launcher);
  if (comm.rank() > 0) return;
  if (json) {
    Json list = Json::array();
    for (const Links& links : all) list.push_back(to_json(links));
    fmt::print("{}\n", Json{{"ranks", comm.size()}, {"links", std::move(list)}}.dump(2));
    return;
  }
  for (const Links& links : all)
    fmt::print("\nthrough {}, messages of {}, one at a time\n{}", links.name,
               human_bytes(static_cast<double>(links.bytes)), table(matrix(links.speeds)));
}

}  // namespace hstu
