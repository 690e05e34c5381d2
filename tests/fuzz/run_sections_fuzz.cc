// The state and the metrics of a run in a checkpoint whose checksums are right: rejected, or numbers that the
// log can have.
#include <nlohmann/json.hpp>

#include "fuzz/harness.h"
#include "hstu/base/checksum.h"
#include "hstu/objective/ranking_running_metrics.h"
#include "hstu/run/state.h"

namespace {

using namespace hstu;

constexpr std::int64_t kWindow = 3;

// Of a run of five samples, made once.
const CheckpointManifest& own_manifest() {
  static const CheckpointManifest manifest = [] {
    RankingRunningMetrics metrics(kWindow);
    RankingSamples samples;
    for (int i = 0; i < 5; ++i) samples.add(0.2f * static_cast<float>(i), i % 2 == 0, i % 2);
    metrics.add_step(samples);
    RunState state;
    state.step = 4;
    state.evaluation.emplace().lists.add("mrr", 0.5);
    state.evaluation->tasks["like"] = {};
    state.best.metric = "auc";
    return read_checkpoint_manifest(save_run(fuzz::made_folder("run", [](const Path&) {}),
                                             {.dataset = "d", .config = ""}, state, "steps",
                                             {metrics.section()}));
  }();
  return manifest;
}

}  // namespace

// Input: changes of the manifest's state as JSON (RFC 7396), a zero byte, and the file of the metrics.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  CheckpointManifest manifest = own_manifest();
  const auto changes = nlohmann::json::parse(fuzz::take_part(rest), nullptr, false);
  if (changes.is_object()) manifest.state.merge_patch(changes);
  return fuzz::accept_or_refuse([&] {
    const Path folder = fuzz::fresh_folder();
    const std::string file = section_file("metrics");
    fuzz::plain_file(folder / file, rest);
    manifest.files[file] = {rest.size(), checksum(rest)};
    write_checkpoint_manifest(folder, manifest);
    RankingRunningMetrics metrics(kWindow);
    const RunState state = load_run(Checkpoint(folder), {metrics.section()});
    require(state.step == 4 && metrics.window().size() <= kWindow, "a state of another run");
    if (state.evaluation) to_json(*state.evaluation, kRankingMetrics).dump();
    fuzz::accept_or_refuse([&] { to_json(metrics.training()).dump(); });
    to_json(metrics.evaluations()).dump();
  });
}
