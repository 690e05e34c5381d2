#include "hstu/benchmark/stage_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/step/step_sections.h"

namespace hstu {
namespace {

constexpr double kGiB = 1 << 30;

StageSums& sums_of(std::string_view stage, std::vector<StageSums>& all) {
  const auto known =
      std::find_if(all.begin(), all.end(), [&](const StageSums& s) { return s.stage == stage; });
  if (known != all.end()) return *known;
  all.push_back({.stage = std::string(stage)});
  return all.back();
}

void add_time(std::string_view section, double ms, StageSums& sums) {
  if (section == kBackwardSection)
    sums.backward_ms += ms;
  else if (section == kUpdateSection)
    sums.update_ms += ms;
  else
    sums.forward_ms += ms;
}

std::optional<double> positive(double value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

std::string cell(const Json& row, const char* key, const char* format, double factor = 1) {
  const Json& value = row.at(key);
  return value.is_null() ? "-" : fmt::format(fmt::runtime(format), factor * value.get<double>());
}

std::string bytes_cell(const Json& row, const char* gib) {
  return row.at(gib).is_null() ? "-" : human_bytes(kGiB * row.at(gib).get<double>());
}

}  // namespace

void add_stages(std::span<const StageTime> ranges, std::vector<StageSums>& sums) {
  std::vector<double> outside(ranges.size());  // of sections
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const StageTime& range = ranges[i];
    if (range.depth == 0) outside[i] = range.ms();
    if (range.depth != 1) continue;
    const auto section = static_cast<std::size_t>(range.outer);
    outside[section] -= range.ms();
    StageSums& stage = sums_of(range.name, sums);
    add_time(ranges[section].name, range.ms(), stage);
    stage.bytes += range.bytes;
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].depth == 0) add_time(ranges[i].name, outside[i], sums_of("other", sums));
  }
}

Json stages_json(std::span<const StageSums> sums, std::int64_t steps, const NeedsByStage& needs,
                 std::optional<double> peak, const std::optional<GpuSpecs>& specs) {
  double total_ms = 0;
  for (const StageSums& stage : sums) total_ms += stage.ms();
  const auto n = static_cast<double>(steps);
  Json list = Json::array();
  for (const StageSums& stage : sums) {
    const auto known = needs.find(stage.stage);
    const StageNeeds need = known == needs.end() ? StageNeeds{} : known->second;
    const double seconds = stage.ms() / n / 1000, moved = static_cast<double>(stage.bytes) / n;
    const auto rate = [&](double amount) { return seconds > 0 ? amount / seconds : 0; };
    list.push_back(
        {{"stage", stage.stage},
         {"forward_ms", stage.forward_ms / n},
         {"backward_ms", stage.backward_ms / n},
         {"update_ms", stage.update_ms / n},
         {"share_of_time", total_ms > 0 ? stage.ms() / total_ms : 0},
         {"tflops", positive(rate(need.flops) / 1e12)},
         {"share_of_peak", peak ? positive(rate(need.flops) / *peak) : std::nullopt},
         {"moved_gib", positive(moved / kGiB)},
         {"least_gib", positive(need.least_bytes / kGiB)},
         {"share_of_bandwidth", specs ? positive(rate(moved) / specs->memory_bandwidth) : std::nullopt}});
  }
  return list;
}

std::string stage_table(const Json& stages) {
  std::vector<std::vector<std::string>> rows{{"stage", "forward ms", "backward ms", "update ms", "of time",
                                              "TFLOP/s", "of peak", "moved", "least", "of bandwidth"}};
  for (const Json& row : stages) {
    rows.push_back({row.at("stage").get<std::string>(), cell(row, "forward_ms", "{:.3f}"),
                    cell(row, "backward_ms", "{:.3f}"), cell(row, "update_ms", "{:.3f}"),
                    cell(row, "share_of_time", "{:.1f} %", 100), cell(row, "tflops", "{:.3g}"),
                    cell(row, "share_of_peak", "{:.1f} %", 100), bytes_cell(row, "moved_gib"),
                    bytes_cell(row, "least_gib"), cell(row, "share_of_bandwidth", "{:.1f} %", 100)});
  }
  return table(rows);
}

}  // namespace hstu
