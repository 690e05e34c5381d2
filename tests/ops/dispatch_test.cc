// How ops find their kernels, and what they refuse.
#include <cstdlib>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/ops/op.h"
#include "support/op_cases.h"

namespace hstu {

template <>
inline constexpr bool ops::kHasGpuKernels<static_cast<ops::Operation>(1000)> = false;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OpCase;

template <typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Dispatch, ATypeWithoutKernelIsRefusedByName) {
  Tape tape;
  const Variable x(Tensor::zeros({2, 2}, DType::bf16));
  EXPECT_THAT(error_of([&] { ops::add(tape, x, x); }), HasSubstr("add: hstu has no kernel for bf16 on host"));
}

// An operation whose kernels for GPUs are not written yet: this file compiles in a build with CUDA too.
constexpr auto kHostOnly = static_cast<ops::Operation>(1000);

struct HostOnlyBody {
  template <typename T>
  void operator()(HostStream) const {
    ++*calls;
  }
  int* calls;
};

TEST(Dispatch, AnOperationWithKernelsForTheHostAloneRunsThereAndIsRefusedElsewhereByName) {
  int calls = 0;
  ops::dispatch<kHostOnly>(Context(), DType::f32, HostOnlyBody{&calls});
  EXPECT_EQ(calls, 1);
  Context dry;
  dry.memory = std::make_shared<DryMemoryPool>(DryDevice{9, 0, 132});
  ops::dispatch<kHostOnly>(dry, DType::bf16, HostOnlyBody{&calls});
  EXPECT_EQ(calls, 1) << "a dry run calls no kernel of the host";
  EXPECT_THAT(error_of([] { ops::refuse(ops::Operation::add, Device::cuda(2), DType::f32, false); }),
              HasSubstr("add: hstu has kernels for the host alone, none for cuda:2: set device = \"host\""));
}

TEST(Dispatch, AnOperandElsewhereIsADefect) {
  auto owner = std::make_shared<int>();
  const Tensor there = Tensor::view({2, 2}, DType::f32, owner.get(), owner, Device::cuda(0));
  Tape tape;
  const Variable here(Tensor::zeros({2, 2}, DType::f32));
  EXPECT_THAT(error_of([&] { ops::add(tape, here, Variable(there)); }),
              HasSubstr("add: expected tensors on host, found one on cuda:0"));
}

class Ranges : public Trace {
 public:
  void begin(std::string_view operation) override { names.emplace_back(operation); }
  void end() override { names.emplace_back("end"); }
  std::vector<std::string> names;
};

TEST(Dispatch, NamesOperationsToTheTrace) {
  Ranges ranges;
  Context context;
  context.trace = &ranges;
  Tape tape(context);
  const Variable x(Tensor::zeros({2, 2}, DType::f32));
  const Variable y = ops::multiply(tape, x, ops::add(tape, x, x));
  EXPECT_THAT(ranges.names, ElementsAre("add", "end", "multiply", "end"));
  tape.backward(y, Tensor::zeros({2, 2}, DType::f32));
  EXPECT_EQ(ranges.names.size(), 8u);
}

// Hands out memory whose bytes are all ones: NaN in every floating-point type.
class NanPool final : public MemoryPool {
 public:
  NanPool() : MemoryPool(Stream(), 0) {}
  void trim() override {}
  MemoryFigures figures() const override { return {}; }

 private:
  Block acquire(std::int64_t bytes) override {
    const std::int64_t capacity = (bytes / 64 + 1) * 64;
    void* const data = std::aligned_alloc(64, static_cast<std::size_t>(capacity));
    std::memset(data, 0xff, static_cast<std::size_t>(capacity));
    return {static_cast<std::byte*>(data), capacity};
  }
  void release(Block block, std::int64_t) noexcept override { std::free(block.data); }
};

class Contract : public ::testing::TestWithParam<OpCase> {
 protected:
  // The result and the gradients of the inputs; undefined for the input that is a constant.
  static std::vector<Tensor> run(const Context& context, std::size_t constant = ~std::size_t{0}) {
    const OpCase& c = GetParam();
    std::vector<Variable> inputs;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) inputs.emplace_back(c.inputs[i].copy(), i != constant);
    Tape tape(context);
    const Variable y = c.run(tape, inputs);
    std::vector<Tensor> results{y.value()};
    if (y.needs_gradient()) tape.backward(y, testing::random_tensor(y.value().shape(), DType::f64, 99));
    for (const Variable& input : inputs) results.push_back(input.gradient());
    return results;
  }
  static bool same(const Tensor& a, const Tensor& b) {
    return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }
};

// A kernel that reads memory it should only write would spread the NaN.
TEST_P(Contract, WritesAllOfItsResultsWhateverTheirMemoryHeld) {
  Context context;
  context.memory = std::make_shared<NanPool>();
  const std::vector<Tensor> expected = run(host_context()), found = run(context);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same(expected[i], found[i])) << i;
}

TEST_P(Contract, LeavesOutAGradientThatNobodyWants) {
  if (GetParam().name.starts_with("attention")) GTEST_SKIP() << "its kernel makes both gradients";
  const std::vector<Tensor> expected = run(host_context());
  for (std::size_t constant = 0; constant + 1 < expected.size(); ++constant) {
    const std::vector<Tensor> found = run(host_context(), constant);
    EXPECT_FALSE(found[constant + 1].defined());
    for (std::size_t i = 1; expected.size() > 2 && i < expected.size(); ++i) {
      if (i == constant + 1) continue;
      EXPECT_TRUE(same(expected[i], found[i])) << i << " without " << constant;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Contract, ::testing::ValuesIn(testing::op_cases(DType::f64)),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace hstu
