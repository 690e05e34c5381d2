// Every choice of what the backward pass recomputes gives the bits of keeping everything.
#include <gtest/gtest.h>

#include "hstu/model/hstu_layer.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

std::vector<std::byte> bytes_of(const Tensor& x, const Context& context) {
  const Tensor host = x.to_host(context.stream);
  return {host.raw(), host.raw() + host.bytes()};
}

// The layer's result, the gradients of its input and of its parameters.
std::vector<std::vector<std::byte>> run(ops::GateForm gate, const Recompute& recompute, bool few_queries,
                                        const Context& context) {
  const testing::CaseSize size{.samples = 5, .tokens_per_sample = 9, .heads = 2, .head_dim = 8};
  const testing::JaggedShape jagged = testing::jagged_shape(size, few_queries ? 2 : -1, DType::f32, context);
  ParameterSet parameters(3, DType::f32);
  const HstuLayer layer(parameters, "layer",
                        {.dim = 12, .heads = 2, .head_dim = 8, .gate = gate, .recompute = recompute});
  if (!context.device().is_host()) parameters.move_to(context);
  Tensor queries;
  if (few_queries) {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(jagged.queries), 1);
    queries = ops::row_index(rows).copy(context);
  }
  const Variable x(testing::random_tensor({jagged.tokens, 12}, DType::f32, 1).copy(context));
  Tape tape(context);
  const Variable y = layer(tape, x, queries, jagged.attention, {0.3, 5, {}});
  tape.backward(y, testing::random_tensor(y.value().shape(), DType::f32, 2));
  std::vector<std::vector<std::byte>> results{bytes_of(y.value(), context), bytes_of(x.gradient(), context)};
  for (const Parameter* const parameter : parameters.all())
    results.push_back(bytes_of(parameter->gradient, context));
  return results;
}

void expect_the_same_bits(const Context& context) {
  for (const ops::GateForm gate : {ops::GateForm::concat, ops::GateForm::product}) {
    for (const bool few_queries : {false, true}) {
      const auto kept = run(gate, {}, few_queries, context);
      for (int choice = 1; choice < 8; ++choice) {
        const Recompute recompute{(choice & 1) != 0, (choice & 2) != 0, (choice & 4) != 0};
        EXPECT_EQ(run(gate, recompute, few_queries, context), kept) << choice << " " << few_queries;
      }
    }
  }
}

TEST(Recompute, GivesTheSameBits) {
  expect_the_same_bits(host_context());
}

TEST(Recompute, GivesTheSameBitsOnAGpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  expect_the_same_bits(make_context(Device::cuda(0)));
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
  EXPECT_NEAR(static_cast<double>(kept - values_held({.silu = true})), 64, 2);
  EXPECT_NEAR(static_cast<double>(kept - values_held({.gate = true})), 16, 2);
}

}  // namespace
}  // namespace hstu
