// The table in docs/attention.md of what each generation of GPUs runs is what choose_attention answers.
#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hstu/attention/route.h"

namespace hstu {
namespace {

constexpr std::array<AttentionDevice, 6> kGenerations{
    {{8, 0, 108}, {8, 6, 84}, {8, 9, 142}, {9, 0, 132}, {10, 0, 148}, {12, 0, 188}}};

AttentionProblem bf16_problem(int head_dim) {
  AttentionProblem p;
  p.samples = 4, p.tokens = 4096, p.heads = 4, p.head_dim = head_dim;
  p.type = AttentionType::bf16;
  p.q = p.k = p.v = {nullptr, std::int64_t{4} * head_dim, head_dim};
  return p;
}

struct RoutedCase {
  std::string name;
  int head_dim;
  std::function<void(AttentionProblem&)> change;
  std::string run_on;  // GPUs on which the tests of these kernels passed
};

std::vector<RoutedCase> routed_cases() {
  static constexpr float kTable[1] = {};
  static constexpr std::int64_t kOffsets[5] = {};
  static float log_sums[1] = {};
  const auto same = [](AttentionProblem& /*p*/) {};
  const auto with_bias = [](AttentionProblem& p) { p.bias.position_table = kTable, p.bias.positions = 1; };
  return {{"bf16, fp16; head size 32, 64, 128, 256", 128, same, "H100, H200"},
          {"any other head size", 96, same, "H100, H200"},
          {"fp32", 128, [](AttentionProblem& p) { p.type = AttentionType::fp32; }, "H100, H200"},
          {"a relative bias, head size 32, 64", 64, with_bias, "H100"},
          {"a relative bias, head size 128", 128, with_bias, "H100"},
          {"a relative bias, head size 256", 256, with_bias, "H100"},
          {"query offsets, bf16", 128, [](AttentionProblem& p) { p.query_offsets = kOffsets; }, "H100, H200"},
          {"softmax, head size 32, 64, 128", 128,
           [](AttentionProblem& p) { p.score = ScoreFunction::softmax, p.log_sums = log_sums; }, "H100"},
          {"softmax with dropout, head size 32, 64, 128", 128,
           [](AttentionProblem& p) {
             p.score = ScoreFunction::softmax, p.log_sums = log_sums, p.dropout.rate = 0.1;
           },
           "H100"},
          {"softmax, any other head size", 256, [](AttentionProblem& p) { p.score = ScoreFunction::softmax; },
           "H100"},
          {"row_stable", 128, [](AttentionProblem& p) { p.row_stable = true; }, "H100"}};
}

// A line for each case, a column for each generation: the kernel, or "forward, backward" where they differ;
// and where they have run.
std::string table_of_routes() {
  std::string text = "| bf16 where not said otherwise |", rule = "| --- |";
  for (const AttentionDevice& device : kGenerations) {
    text += fmt::format(" {}.{} |", device.major, device.minor);
    rule += " --- |";
  }
  text += " run on |\n" + rule + " --- |\n";
  for (const RoutedCase& routed : routed_cases()) {
    text += "| " + routed.name + " |";
    for (const AttentionDevice& device : kGenerations) {
      AttentionProblem p = bf16_problem(routed.head_dim);
      routed.change(p);
      const AttentionRoute route = choose_attention(p, device);
      const std::string forward = to_string(route.forward), backward = to_string(route.backward);
      text +=
          forward == backward ? fmt::format(" {} |", forward) : fmt::format(" {}, {} |", forward, backward);
    }
    text += " " + routed.run_on + " |\n";
  }
  return text;
}

TEST(AttentionRoute, DocsSayWhatEachGenerationRuns) {
  std::ifstream file(HSTU_SOURCE_DIR "/docs/attention.md");
  const std::string docs{std::istreambuf_iterator<char>(file), {}}, table = table_of_routes();
  EXPECT_NE(docs.find("\n" + table + "\n"), std::string::npos) << "docs/attention.md needs this table:\n"
                                                               << table;
}

}  // namespace
}  // namespace hstu
