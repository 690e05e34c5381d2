// Every op forward and backward, an HSTU layer and the embedding tables, at the sizes of the laptop
// configuration.
//   ./dev bench --benchmark_filter=attention
#include <memory>
#include <numeric>

#include <benchmark/benchmark.h>

#include "hstu/embedding/table.h"
#include "hstu/loss/full_softmax.h"
#include "hstu/model/hstu_layer.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

using testing::OpCase;
using testing::random_tensor;

constexpr testing::CaseSize kLaptop{
    .samples = 32, .tokens_per_sample = 171, .width = 64, .hidden = 256, .heads = 2, .head_dim = 32};

std::vector<Variable> leaves(const OpCase& c) {
  std::vector<Variable> variables;
  for (const Tensor& input : c.inputs) variables.emplace_back(input);
  return variables;
}

void forward(benchmark::State& state, const OpCase& c) {
  const std::vector<Variable> inputs = leaves(c);
  for (auto _ : state) {
    Tape tape(false);
    benchmark::DoNotOptimize(c.run(tape, inputs).value().raw());
  }
}

void forward_backward(benchmark::State& state, const OpCase& c) {
  Tape shape_only(false);
  const Tensor dy = random_tensor(c.run(shape_only, leaves(c)).value().shape(), DType::f32, 7);
  for (auto _ : state) {
    Tape tape;
    const Variable y = c.run(tape, leaves(c));
    tape.backward(y, dy);
  }
}

// x (T, 64) through one layer and back; all samples 171 tokens long.
void layer(benchmark::State& state) {
  const HstuLayerConfig config{.dim = 64, .heads = 2, .head_dim = 32};
  ParameterSet parameters(1, DType::f32);
  const HstuLayer layer(parameters, "layer", config);
  std::vector<std::int64_t> offsets;
  for (std::int64_t b = 0; b <= kLaptop.samples; ++b) offsets.push_back(b * kLaptop.tokens_per_sample);
  ops::AttentionShape shape;
  shape.heads = config.heads;
  shape.head_dim = config.head_dim;
  shape.alpha = 0.18;
  shape.scale = 1.0 / 4096;
  shape.offsets = Tensor::from({kLaptop.samples + 1}, offsets);
  const Tensor x = random_tensor({offsets.back(), config.dim}, DType::f32, 3);
  for (auto _ : state) {
    Tape tape;
    const Variable y = layer(tape, Variable(x), Tensor(), shape, {0.1, 5, {}});
    tape.backward(y, x);
  }
}

// Looking up and moving 5,000 distinct rows of 64 floats.
void embedding_step(benchmark::State& state) {
  EmbeddingTable table({"bench", 100'000, 64}, {}, 1);
  std::vector<std::int64_t> ids(5'000);
  std::iota(ids.begin(), ids.end(), 0);
  for (std::int64_t& id : ids) id = id * 17 % 100'000;
  for (auto _ : state) {
    const Handles selected = table.select(ids, RowAccess::train);
    const Tensor rows = table.gather(selected);
    table.update(selected, rows, {.learning_rate = 1e-6});
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ids.size()));
}

// The loss over a catalogue (V, E) of R positions, forward and backward. An iteration of the size of ML-20M
// takes seconds.
struct CatalogueSize {
  const char* name;
  std::int64_t positions, items, width;
};
constexpr CatalogueSize kCatalogues[] = {{"full_softmax_ml1m/both", 25'600, 3'883, 50},
                                         {"full_softmax_ml20m/both", 25'600, 26'744, 256}};
void full_softmax(benchmark::State& state, const CatalogueSize& size) {
  const Tensor vectors = random_tensor({size.positions, size.width}, DType::f32, 1),
               rows = random_tensor({size.items, size.width}, DType::f32, 2),
               targets = testing::random_labels(size.positions, size.items, 3);
  Tensor gradient = Tensor::zeros({size.items, size.width}, DType::f32);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(size.items));
  std::iota(ids.begin(), ids.end(), 0);
  const CatalogueRows catalogue{
      .size = size.items,
      .width = size.width,
      .ids = ids.data(),
      .device_ids = {},
      .read = [&](std::int64_t first,
                  Tensor& block) { block.copy_from(rows.row_range(first, first + block.rows())); },
      .gradient = [&] { return gradient; }};
  for (auto _ : state) {
    Tape tape;
    tape.backward(loss::full_softmax(tape, Variable(vectors), targets, catalogue, {.scale = 1, .unit = true},
                                     static_cast<double>(size.positions)));
  }
  const std::int64_t multiplied = size.positions * size.items * size.width;
  state.counters["GFLOPS"] = benchmark::Counter(8e-9 * static_cast<double>(multiplied),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void register_all() {
  for (const CatalogueSize& size : kCatalogues)
    benchmark::RegisterBenchmark(size.name, full_softmax, size)->Unit(benchmark::kMillisecond);

  for (const OpCase& c : testing::op_cases(DType::f32, kLaptop)) {
    benchmark::RegisterBenchmark((c.name + "/forward").c_str(), forward, c)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((c.name + "/both").c_str(), forward_backward, c)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("layer/both", layer)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("embedding/both", embedding_step)->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace hstu

int main(int argc, char** argv) {
  hstu::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
