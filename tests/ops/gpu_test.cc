// Every op on a GPU against its CPU form in double, from the same inputs.
#include "support/gpu_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "hstu/ops/convert.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

using testing::CaseSize;
using testing::OpCase;

template <typename T>
double to_double(T x) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return static_cast<double>(static_cast<float>(x));
  else
    return x;
}

template <typename Body>
void with_type(DType type, const Body& body) {
  if (type == DType::bf16) return body.template operator()<BFloat16>();
  with_float_type(type, body);
}

// x (f32) in another type.
Tensor as(const Tensor& x, DType type) {
  Tensor y = Tensor::empty(x.shape(), type);
  with_type(type, [&]<typename T>() {
    std::transform(x.data<float>(), x.data<float>() + x.size(), y.mutable_data<T>(),
                   [](float v) { return T(v); });
  });
  return y;
}

std::vector<double> values_of(const Tensor& x) {
  std::vector<double> values;
  with_type(x.dtype(), [&]<typename T>() {
    for (std::int64_t i = 0; i < x.size(); ++i) values.push_back(to_double(x.data<T>()[i]));
  });
  return values;
}

// The result, then the gradients of the inputs that have one. Activations are in `type`; every input is used
// `uses` times. What is used more than once is a parameter, unless it is an activation.
std::vector<std::vector<double>> run(const OpCase& c, DType type, const Context& context, int uses = 1) {
  Tape tape(context);
  std::vector<std::unique_ptr<Parameter>> weights;
  std::vector<Variable> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const Tensor in_sums = as(c.inputs[i], accumulator_of(type)).copy(context);
    if (c.roles[i] == 'w' || (c.roles[i] == 's' && uses > 1)) {
      weights.push_back(std::make_unique<Parameter>(
          Parameter{"w", in_sums, Tensor::zeros(in_sums.shape(), in_sums.dtype(), context)}));
      inputs.push_back(c.roles[i] == 'w' ? ops::weight(tape, *weights.back(), type)
                                         : Variable(*weights.back()));
    } else {
      inputs.emplace_back(c.roles[i] == 's' ? in_sums : as(c.inputs[i], type).copy(context),
                          c.roles[i] != 'c');
    }
  }
  Variable y = c.run(tape, inputs);
  for (int use = 1; use < uses; ++use) y = ops::add(tape, y, c.run(tape, inputs));
  const Tensor dy = as(testing::random_tensor(y.value().shape(), DType::f32, 99), DType::bf16);
  Tensor exact = Tensor::empty(dy.shape(), DType::f32);
  std::transform(dy.data<BFloat16>(), dy.data<BFloat16>() + dy.size(), exact.mutable_data<float>(),
                 [](BFloat16 x) { return static_cast<float>(x); });
  tape.backward(y, as(exact, type));
  std::vector<std::vector<double>> results{values_of(y.value().to_host(context.stream))};
  for (const Variable& input : inputs)
    if (input.needs_gradient()) results.push_back(values_of(input.gradient().to_host(context.stream)));
  return results;
}

// The same numbers, rounded to bfloat16, in float.
std::vector<Tensor> rounded(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> all;
  for (const Tensor& input : inputs) {
    const Tensor in_bf16 = as(input, DType::bf16);
    Tensor same = Tensor::empty(input.shape(), DType::f32);
    for (std::int64_t i = 0; i < input.size(); ++i)
      same.mutable_data<float>()[i] = static_cast<float>(in_bf16.data<BFloat16>()[i]);
    all.push_back(same);
  }
  return all;
}

struct Error {
  double most = 0, largest = 0;  // difference; element of the truth
};
Error error_of(const std::vector<double>& found, const std::vector<double>& truth) {
  Error error;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double difference = found[i] - truth[i];
    error.most = std::isnan(difference) ? INFINITY : std::max(error.most, std::abs(difference));
    error.largest = std::max(error.largest, std::abs(truth[i]));
  }
  return error;
}

class OpsOnGpu : public testing::GpuTest {
 protected:
  // The cases for the GPU with inputs that are numbers in bfloat16, and those cases in double.
  struct Pair {
    OpCase exact, device;
  };
  std::vector<Pair> cases(const CaseSize& size) const {
    std::vector<Pair> pairs;
    const auto exact = testing::op_cases(DType::f64, size),
               device = testing::op_cases(DType::f32, size, gpu_);
    for (std::size_t c = 0; c < device.size(); ++c) {
      const std::vector<Tensor> inputs = rounded(device[c].inputs);
      pairs.push_back({{exact[c].name, inputs, exact[c].run, exact[c].roles},
                       {exact[c].name, inputs, device[c].run, exact[c].roles}});
    }
    return pairs;
  }
  // In float: the error that the CPU form has in float, several times over because the GPU adds in another
  // order. In bfloat16: two units in the last place of the largest element.
  void expect_good(const Pair& pair, const OpCase& host_case, DType type, int uses) const {
    const auto& [exact, device] = pair;
    SCOPED_TRACE(exact.name);
    const auto truth = run(exact, DType::f64, host_context(), uses), found = run(device, type, gpu_, uses);
    const auto host =
        run({exact.name, exact.inputs, host_case.run, exact.roles}, DType::f32, host_context(), uses);
    for (std::size_t i = 0; i < truth.size(); ++i) {
      const Error of_gpu = error_of(found[i], truth[i]), of_host = error_of(host[i], truth[i]);
      const double allowed =
          type == DType::bf16 ? uses * 0x1p-7 * of_host.largest : 4 * of_host.most + 1e-6 * of_host.largest;
      EXPECT_LE(of_gpu.most, allowed)
          << (i == 0 ? "result" : "gradient ") << i << ", largest " << of_host.largest;
    }
    EXPECT_EQ(found, run(device, type, gpu_, uses)) << "two runs differ";
  }
  void expect_good(const CaseSize& size, DType type, int uses = 1) const {
    const auto host_cases = testing::op_cases(DType::f32, size);
    for (const Pair& pair : cases(size)) {
      const auto same = std::find_if(host_cases.begin(), host_cases.end(),
                                     [&](const OpCase& c) { return c.name == pair.exact.name; });
      expect_good(pair, *same, type, uses);
    }
  }
};

constexpr CaseSize kStep{
    .samples = 40, .tokens_per_sample = 150, .width = 64, .hidden = 256, .heads = 2, .head_dim = 32};
constexpr CaseSize kRagged{
    .samples = 33, .tokens_per_sample = 67, .width = 77, .hidden = 131, .heads = 3, .head_dim = 20};

// Widths of whole copies of 16 bytes, which tensor cores take, that no tile divides.
constexpr CaseSize kAligned{
    .samples = 33, .tokens_per_sample = 67, .width = 72, .hidden = 136, .heads = 3, .head_dim = 24};

// The same, with enough tiles for Hopper's own products.
constexpr CaseSize kLarge{
    .samples = 33, .tokens_per_sample = 65, .width = 264, .hidden = 320, .heads = 3, .head_dim = 24};

// Few rows of large products, so that the gradients of weights are one part each and added to what is there.
constexpr CaseSize kFewRows{
    .samples = 9, .tokens_per_sample = 31, .width = 520, .hidden = 1032, .heads = 2, .head_dim = 32};

// Some of a batch of the smallest models, whose MLPs are one kernel each.
constexpr CaseSize kSmallModel{
    .samples = 11, .tokens_per_sample = 17, .width = 64, .hidden = 128, .heads = 2, .head_dim = 32};

// Rows that fill all lanes of several warps.
constexpr CaseSize kWide{
    .samples = 9, .tokens_per_sample = 31, .width = 512, .hidden = 1024, .heads = 2, .head_dim = 32};

// So many tokens that sums by row sort them.
constexpr CaseSize kManyTokens{
    .samples = 300, .tokens_per_sample = 30, .width = 20, .hidden = 16, .heads = 2, .head_dim = 8};
// The same, of rows of whole copies of 16 bytes.
constexpr CaseSize kManyWholeTokens{
    .samples = 300, .tokens_per_sample = 30, .width = 24, .hidden = 16, .heads = 2, .head_dim = 8};

// Samples of up to 2,000 tokens.
constexpr CaseSize kLong{
    .samples = 6, .tokens_per_sample = 1000, .width = 16, .hidden = 16, .heads = 4, .head_dim = 128};

TEST_F(OpsOnGpu, FloatAtSmallSizes) {
  expect_good({}, DType::f32);
}
TEST_F(OpsOnGpu, FloatAddsToGradientsOfASecondUse) {
  expect_good({}, DType::f32, 2);
}
TEST_F(OpsOnGpu, FloatAtTheSizesOfAStep) {
  expect_good(kStep, DType::f32);
}
TEST_F(OpsOnGpu, FloatAtTheSizesOfASmallModel) {
  expect_good(kSmallModel, DType::f32);
}
TEST_F(OpsOnGpu, FloatAtWidthsThatNoTileDivides) {
  expect_good(kRagged, DType::f32);
}
TEST_F(OpsOnGpu, FloatOfManyTokens) {
  for (const CaseSize& size : {kManyTokens, kManyWholeTokens}) {
    expect_good(size, DType::f32);
    expect_good(size, DType::f32, 2);
  }
}
TEST_F(OpsOnGpu, BFloat16AtSmallSizes) {
  expect_good({}, DType::bf16);
}
TEST_F(OpsOnGpu, BFloat16AddsToGradientsOfASecondUse) {
  expect_good({}, DType::bf16, 2);
}
TEST_F(OpsOnGpu, BFloat16AtTheSizesOfAStep) {
  expect_good(kStep, DType::bf16);
}
TEST_F(OpsOnGpu, BFloat16OnTensorCoresAtWidthsThatNoTileDivides) {
  expect_good(kAligned, DType::bf16);
  expect_good(kAligned, DType::bf16, 2);
}
TEST_F(OpsOnGpu, BFloat16InLargeProducts) {
  expect_good(kLarge, DType::bf16);
  expect_good(kLarge, DType::bf16, 2);
  expect_good(kFewRows, DType::bf16);
  expect_good(kFewRows, DType::bf16, 2);
}
TEST_F(OpsOnGpu, FloatOfWideRows) {
  expect_good(kWide, DType::f32);
}
TEST_F(OpsOnGpu, BFloat16OfWideRows) {
  expect_good(kWide, DType::bf16);
  expect_good(kWide, DType::bf16, 2);
}
TEST_F(OpsOnGpu, BFloat16OfManyTokens) {
  for (const CaseSize& size : {kManyTokens, kManyWholeTokens}) {
    expect_good(size, DType::bf16);
    expect_good(size, DType::bf16, 2);
  }
}
// To bfloat16 and back, and the gradients, of which the second is added: whole groups of eight and others.
TEST_F(OpsOnGpu, ConvertsAsTheHostDoes) {
  for (const std::int64_t size : {1, 8, 4099}) {
    const Tensor x = testing::random_tensor({size}, DType::f32, 1),
                 dy = testing::random_tensor({size}, DType::f32, 2);
    const auto results = [&](const Context& context) {
      Tape tape(context);
      const Variable in(x.copy(context));
      const auto there_and_back = [&] {
        return ops::convert(tape, ops::convert(tape, in, DType::bf16), DType::f32);
      };
      const Variable y = ops::add(tape, there_and_back(), there_and_back());
      tape.backward(y, dy);
      return std::pair(values_of(y.value().to_host(context.stream)),
                       values_of(in.gradient().to_host(context.stream)));
    };
    EXPECT_EQ(results(gpu_), results(host_context())) << size << " elements";
  }
}
// Trap: a run that ends with other bytes when it is repeated. The gradient of a query is a sum over many
// tiles of keys, in the order in which they were computed unless the context asks for the same bits.
TEST_F(OpsOnGpu, AttentionOfLongSamplesHasTheSameBitsEveryTime) {
  for (const Pair& pair : cases(kLong)) {
    if (pair.device.name != "attention") continue;
    const auto first = run(pair.device, DType::bf16, gpu_);
    for (int i = 0; i < 20; ++i) ASSERT_EQ(run(pair.device, DType::bf16, gpu_), first) << i;
  }
}
// Launches that the driver gets several at a time (Stream::in_groups).
TEST_F(OpsOnGpu, InGroupsHaveTheBitsOfOperationsAlone) {
  for (const CaseSize& size : {CaseSize{}, kRagged, kSmallModel}) {
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const Pair& pair : cases(size)) {
        const auto alone = run(pair.device, type, gpu_, 2);
        for (int i = 0; i < 3; ++i) {
          decltype(run(pair.device, type, gpu_, 2)) together;
          gpu_.stream.in_groups([&] { together = run(pair.device, type, gpu_, 2); });
          ASSERT_EQ(together, alone) << pair.device.name << ", " << to_string(type);
        }
      }
    }
  }
}
// Widths that copies of 16 bytes do not divide, blocks of one row, and the sizes of models.
TEST_F(OpsOnGpu, SmallMlpsOfOddAndWholeWidths) {
  using testing::MlpSize;
  constexpr MlpSize kSizes[]{
      {9, 5, 24, 7, true},         {9, 5, 24, 7, false},      {1, 5, 24, 7, true},
      {16, 6, 10, 6, true},        {9, 20, 36, 12, true},     {9, 20, 36, 12, false},
      {11, 33, 65, 70, true},      {17, 3, 41, 2, false},     {71, 32, 64, 32, true},
      {1, 32, 64, 32, true},       {8, 64, 64, 64, true},     {71, 32, 64, 1, false},
      {9, 64, 128, 64, true},      {21, 64, 128, 1, false},   {5, 8, 300, 20, true},
      {5, 300, 24, 130, true},     {9, 5, 24, 7, true, true}, {9, 5, 24, 7, false, true},
      {71, 32, 64, 32, true, true}};
  for (const MlpSize& size : kSizes) {
    for (const bool x_has_gradient : {true, false}) {
      OpCase mlp = testing::mlp_case("mlp", DType::f32, size);
      mlp.inputs = rounded(mlp.inputs);
      if (!x_has_gradient) mlp.roles[0] = 'c';
      for (const int uses : {1, 2}) {
        SCOPED_TRACE(::testing::Message() << size.rows << " rows, widths " << size.in << ", " << size.hidden
                                          << ", " << size.out << ", " << uses << " uses");
        expect_good({mlp, mlp}, mlp, DType::f32, uses);
      }
    }
  }
}
// A larger MLP needs more shared memory than the smaller one that is launched after it.
TEST_F(OpsOnGpu, SmallMlpsOfTwoSizesInOneGroup) {
  std::vector<OpCase> mlps;
  for (const CaseSize& size : {kSmallModel, CaseSize{}}) {
    const std::vector<Pair> all = cases(size);
    mlps.push_back(
        std::find_if(all.begin(), all.end(), [](const Pair& p) { return p.device.name == "mlp"; })->device);
  }
  std::vector<std::vector<Variable>> inputs;
  for (const OpCase& mlp : mlps) {
    inputs.emplace_back();
    for (const Tensor& input : mlp.inputs) inputs.back().emplace_back(input.copy(gpu_));
  }
  const auto compute = [&] {
    Tape tape(gpu_);
    std::vector<Variable> results;
    for (const std::size_t i : {0, 1, 0, 1}) results.push_back(mlps[i].run(tape, inputs[i]));
    return results;
  };
  const std::vector<Variable> alone = compute();
  std::vector<Variable> together;
  gpu_.stream.in_groups([&] { together = compute(); });
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(values_of(together[i].value().to_host(gpu_.stream)),
              values_of(alone[i].value().to_host(gpu_.stream)));
  }
}
TEST_F(OpsOnGpu, AnErrorAmongOperationsInGroupsLeavesTheStreamUsable) {
  const OpCase one = cases({}).front().device;
  const auto alone = run(one, DType::f32, gpu_);
  EXPECT_THROW(gpu_.stream.in_groups([&] {
    run(one, DType::f32, gpu_);
    Tape tape(gpu_);
    ops::convert(tape, Variable(Tensor::zeros({4, 4}, DType::f32, gpu_)), DType::bf16);
    fail("in the middle");
  }),
               hstu::Error);
  gpu_.stream.in_groups([&] { EXPECT_EQ(run(one, DType::f32, gpu_), alone); });
  EXPECT_EQ(run(one, DType::f32, gpu_), alone);
}
TEST_F(OpsOnGpu, AnEventInAGroupMarksTheLaunchesBeforeIt) {
  const Variable x(Tensor::from<float>({4, 4}, std::vector<float>(16, 3)).copy(gpu_));
  const Stream beside(gpu_.device());
  for (int i = 0; i < 20; ++i) {
    Event converted(gpu_.device());
    Tensor result, there;
    gpu_.stream.in_groups([&] {
      Tape tape(gpu_, false);
      result = ops::convert(tape, x, DType::bf16).value();
      converted.record_later(gpu_.stream);
      if (i % 2 == 0) return;
      beside.wait(converted);  // inside the group
      there = result.to_host(beside);
    });
    converted.synchronize();
    EXPECT_TRUE(converted.reached());
    if (i % 2 == 0) there = result.to_host(beside);
    EXPECT_EQ(values_of(there), std::vector<double>(16, 3));
  }
  EXPECT_THROW(Event(gpu_.device(), true).record_later(gpu_.stream), InternalError);
}
// The sums of gradients are late work (LaunchGroups::Late), which a pass ends with.
TEST_F(OpsOnGpu, GradientsAreThereForTheRestOfTheirGroup) {
  const std::vector<Pair> all = cases(kSmallModel);
  const OpCase& mlp =
      std::find_if(all.begin(), all.end(), [](const Pair& p) { return p.device.name == "mlp"; })->device;
  const auto gradient_after = [&] {
    std::vector<Variable> inputs;
    for (const Tensor& input : mlp.inputs) inputs.emplace_back(input.copy(gpu_));
    Tape tape(gpu_);
    const Variable y = mlp.run(tape, inputs);
    tape.backward(y, Tensor(y.value()));  // any numbers, on the GPU
    Tape after(gpu_, false);
    return ops::convert(after, Variable(inputs[1].gradient()), DType::bf16).value();
  };
  const Tensor alone = gradient_after();
  Tensor together;
  gpu_.stream.in_groups([&] { together = gradient_after(); });
  EXPECT_EQ(values_of(together.to_host(gpu_.stream)), values_of(alone.to_host(gpu_.stream)));
}
TEST_F(OpsOnGpu, BFloat16AtWidthsThatNoTileDivides) {
  expect_good(kRagged, DType::bf16);
}

}  // namespace
}  // namespace hstu
