// Every choice of what the backward pass recomputes gives the bits of keeping everything.
#include <algorithm>

#include <gtest/gtest.h>

#include "hstu/model/hstu_stack.h"
#include "support/op_cases.h"
#include "support/recompute_choices.h"

namespace hstu {
namespace {

std::vector<std::byte> bytes_of(const Tensor& x, const Context& context) {
  const Tensor host = x.to_host(context.stream);
  return {host.raw(), host.raw() + host.bytes()};
}

Tensor to_bf16(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape(), DType::bf16);
  std::transform(x.data<float>(), x.data<float>() + x.size(), y.mutable_data<BFloat16>(),
                 [](float v) { return BFloat16(v); });
  return y;
}

struct Case {
  testing::CaseSize size;
  DType type = DType::f32;  // of tokens
  Context context = host_context();
};

// The layer's result, the gradients of its input and of its parameters.
std::vector<std::vector<std::byte>> run(const Case& c, HstuLayerConfig config, const Recompute& recompute,
                                        bool few_queries) {
  const testing::JaggedShape jagged =
      testing::jagged_shape(c.size, few_queries ? 2 : -1, DType::f32, c.context);
  ParameterSet parameters(3, DType::f32);
  config.dim = c.size.width, config.heads = c.size.heads, config.head_dim = c.size.head_dim;
  config.recompute = recompute;
  const HstuLayer layer(parameters, "layer", config);
  if (!c.context.device().is_host()) parameters.move_to(c.context);
  Tensor queries;
  if (few_queries) {
    const std::vector<std::int32_t> rows(static_cast<std::size_t>(jagged.queries), 1);
    queries = ops::row_index(rows).copy(c.context);
  }
  const auto values = [&](const Shape& shape, std::uint64_t seed) {
    const Tensor x = testing::random_tensor(shape, DType::f32, seed);
    return (c.type == DType::bf16 ? to_bf16(x) : x).copy(c.context);
  };
  const Variable x(values({jagged.tokens, c.size.width}, 1));
  Tape tape(c.context);
  const Variable y = layer(tape, x, queries, jagged.attention, {0.3, 5, {}});
  tape.backward(y, values(y.value().shape(), 2));
  std::vector<std::vector<std::byte>> results{bytes_of(y.value(), c.context),
                                              bytes_of(x.gradient(), c.context)};
  for (const Parameter* const parameter : parameters.all())
    results.push_back(bytes_of(parameter->gradient, c.context));
  return results;
}

void expect_the_same_bits(const Case& c) {
  // The last one as in retrieval.
  std::vector<HstuLayerConfig> layers{{.gate = ops::GateForm::concat}, {.gate = ops::GateForm::product}};
  if (c.context.device().is_host()) {
    layers.push_back({.gate = ops::GateForm::product,
                      .norm_affine = false,
                      .uvqk_bias = false,
                      .output_bias = true,
                      .bias = {.positions = 5}});
  }
  for (const HstuLayerConfig& layer : layers) {
    for (const bool few_queries : {false, true}) {
      const auto kept = run(c, layer, {}, few_queries);
      for (const Recompute& choice : testing::recompute_choices()) {
        const auto found = run(c, layer, choice, few_queries);
        ASSERT_EQ(found.size(), kept.size());
        for (std::size_t i = 0; i < kept.size(); ++i)
          EXPECT_TRUE(found[i] == kept[i])
              << testing::to_string(choice) << ", gate " << static_cast<int>(layer.gate) << ", few queries "
              << few_queries << ", result " << i;
      }
    }
  }
}

constexpr testing::CaseSize kSmall{
    .samples = 5, .tokens_per_sample = 9, .width = 12, .heads = 2, .head_dim = 8};
// Enough for the products that activate in their epilogue.
constexpr testing::CaseSize kLarge{
    .samples = 33, .tokens_per_sample = 65, .width = 128, .heads = 2, .head_dim = 64};

TEST(Recompute, GivesTheSameBits) {
  expect_the_same_bits({kSmall});
}

TEST(Recompute, GivesTheSameBitsOnAGpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Context gpu = make_context(Device::cuda(0));
  expect_the_same_bits({kSmall, DType::f32, gpu});
  expect_the_same_bits({kLarge, DType::bf16, gpu});
}

TEST(Recompute, FreesWhatIsRecomputed) {
  const auto values_held = [](const Recompute& recompute) {
    const auto pool = MemoryPool::create(Stream());
    const Context context{Stream(), pool};
    ParameterSet parameters(3, DType::f32);
    const HstuLayer layer(
        parameters, "layer",
        {.dim = 16, .heads = 2, .head_dim = 8, .gate = ops::GateForm::product, .recompute = recompute});
    const testing::CaseSize size{.samples = 5, .tokens_per_sample = 200, .heads = 2, .head_dim = 8};
    const testing::JaggedShape jagged = testing::jagged_shape(size, -1, DType::f32, context);
    Tape tape(context);
    const Variable x(testing::random_tensor({jagged.tokens, 16}, DType::f32, 1));
    const Variable y = layer(tape, x, {}, jagged.attention, {});
    return pool->figures().in_use / (jagged.tokens * 4);
  };
  const auto kept = values_held({});
  EXPECT_NEAR(static_cast<double>(kept - values_held({.norm = true})), 16, 2);
  EXPECT_NEAR(static_cast<double>(kept - values_held({.silu = true})), 48, 2);
  EXPECT_NEAR(static_cast<double>(kept - values_held({.gate = true})), 16, 2);
  EXPECT_EQ(values_held({.layer = true}), 16);  // the result
}

TEST(Recompute, OfLayersNeedsOneInputForEach) {
  constexpr std::int64_t kTokens = 1000, kDim = 16;
  const auto peak = [](std::int64_t layers, bool recompute) {
    const Context context{Stream(), MemoryPool::create(Stream())};
    ParameterSet parameters(3, DType::f32);
    const HstuLayerConfig layer{.dim = kDim, .heads = 2, .head_dim = 8, .recompute = {.layer = recompute}};
    const HstuStack stack(parameters, "layers", {layers, layer, 0.1});
    const StackRows all{{}, Tensor::from<std::int64_t>({2}, {0, kTokens}), testing::random_names(kTokens, 2)};
    const Variable x(testing::random_tensor({kTokens, kDim}, DType::f32, 1));
    Tape tape(context);
    const Variable y = stack(tape, x, all, all, 0.1, Draws(1, 0), 0);
    tape.backward(y, testing::random_tensor({kTokens, kDim}, DType::f32, 2));
    return context.memory->figures().peak;
  };
  constexpr std::int64_t kInput = kTokens * kDim * 4;
  EXPECT_EQ(peak(6, true) - peak(5, true), kInput);
  EXPECT_GT(peak(6, false) - peak(5, false), 9 * kInput);
}

}  // namespace
}  // namespace hstu
