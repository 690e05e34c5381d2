// The softmax over a catalogue on a GPU against the plain form in double, from the same numbers.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/loss/full_softmax.h"
#include "hstu/ops/convert.h"
#include "loss/plain_catalogue.h"
#include "support/gpu_test.h"

namespace hstu::testing_full_softmax_gpu {
namespace {

using testing::naive_softmax;
using testing::NaiveSoftmax;
using testing::softmax_inputs;
using testing::SoftmaxCase;
using testing::SoftmaxInputs;

struct GpuOutcome {
  double loss = 0;
  std::vector<float> dvectors, drows;
};

std::vector<float> floats_of(const Tensor& tensor, const Context& gpu) {
  const Tensor host = tensor.to_host(gpu.stream);
  return {host.data<float>(), host.data<float>() + host.size()};
}

class FullSoftmaxOnGpu : public testing::GpuTest {
 protected:
  GpuOutcome outcome_of(const SoftmaxCase& c, const SoftmaxInputs& in, DType products, double longest = 0,
                        const Tensor& weights = {}) const {
    const Tensor rows = in.rows.copy(gpu_), ids = Tensor::from<std::int64_t>({c.items}, in.ids).copy(gpu_);
    Tensor gradient = Tensor::zeros(rows.shape(), DType::f32, gpu_);
    const CatalogueRows catalogue{.size = c.items,
                                  .width = c.width,
                                  .ids = in.ids.data(),
                                  .device_ids = ids,
                                  .read =
                                      [&](std::int64_t first, Tensor& block) {
                                        block.copy_from(rows.row_range(first, first + block.rows()),
                                                        gpu_.stream);
                                      },
                                  .gradient = [&] { return gradient; }};
    Tape tape(gpu_);
    const Variable vectors(in.vectors.copy(gpu_));
    const Variable loss =
        loss::full_softmax(tape, ops::convert(tape, vectors, products), in.targets.copy(gpu_), catalogue,
                           {.scale = c.scale, .unit = c.unit, .longest = longest, .weights = weights},
                           static_cast<double>(c.positions));
    tape.backward(loss);
    return {floats_of(loss.value(), gpu_).front(), floats_of(vectors.gradient(), gpu_),
            floats_of(gradient, gpu_)};
  }
};

// The largest difference, relative to the largest element.
double error_of(const std::vector<float>& found, const std::vector<double>& expected) {
  double most = 0, worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    most = std::max(most, std::abs(expected[i]));
    const double error = std::abs(static_cast<double>(found[i]) - expected[i]);
    worst = error <= worst ? worst : error;  // also a NaN
  }
  return worst / std::max(most, 1e-3);  // of one item they are zeros
}

// More than one block of items and more than one chunk of positions, and edges of both.
const SoftmaxCase kGpuCases[] = {{1, 1, 8},        {50, 37, 16},   {130, 2500, 50},
                                 {300, 5000, 128}, {4200, 70, 64}, {60, 90, 24, 1.5, false}};

TEST_F(FullSoftmaxOnGpu, AgreesWithThePlainForm) {
  for (const SoftmaxCase& c : kGpuCases) {
    SCOPED_TRACE(::testing::Message() << c.positions << " x " << c.items << " x " << c.width);
    const SoftmaxInputs in = softmax_inputs(c, DType::f32);
    const NaiveSoftmax expected = naive_softmax<float>(c, in, static_cast<double>(c.positions));
    const GpuOutcome f32 = outcome_of(c, in, DType::f32), bf16 = outcome_of(c, in, DType::bf16);
    EXPECT_NEAR(f32.loss, expected.loss, 1e-4 * (1 + expected.loss));
    EXPECT_LE(error_of(f32.dvectors, expected.dvectors), 1e-4);
    EXPECT_LE(error_of(f32.drows, expected.drows), 1e-4);
    EXPECT_NEAR(bf16.loss, expected.loss, 3e-2 * (1 + expected.loss));
    EXPECT_LE(error_of(bf16.dvectors, expected.dvectors), 5e-2);
    EXPECT_LE(error_of(bf16.drows, expected.drows), 5e-2);
  }
}

// The form of unit rows and vectors with a bound, where the GPU has it: widths with and without padding,
// several parts and several blocks of items.
TEST_F(FullSoftmaxOnGpu, OfUnitVectorsAgreesWithThePlainForm) {
  for (const SoftmaxCase& c :
       {SoftmaxCase{1, 1, 8}, SoftmaxCase{50, 37, 16}, SoftmaxCase{130, 2500, 50},
        SoftmaxCase{300, 5000, 128}, SoftmaxCase{700, 300, 64}, SoftmaxCase{40, 70000, 24}}) {
    SCOPED_TRACE(::testing::Message() << c.positions << " x " << c.items << " x " << c.width);
    const SoftmaxInputs in = softmax_inputs(c, DType::f32);
    const NaiveSoftmax expected = naive_softmax<float>(c, in, static_cast<double>(c.positions));
    const GpuOutcome found = outcome_of(c, in, DType::bf16, 1);
    EXPECT_NEAR(found.loss, expected.loss, 3e-2 * (1 + expected.loss));
    EXPECT_LE(error_of(found.dvectors, expected.dvectors), 5e-2);
    EXPECT_LE(error_of(found.drows, expected.drows), 5e-2);
  }
}

// The first 40 positions alone are half of 40 with a weight of a half and others of none.
TEST_F(FullSoftmaxOnGpu, MultipliesPositionsByTheirWeights) {
  const SoftmaxCase c{130, 2500, 50};
  SoftmaxCase of_40 = c;
  of_40.positions = 40;
  const SoftmaxInputs in = softmax_inputs(c, DType::f32);
  SoftmaxInputs first = in;
  first.vectors = in.vectors.row_range(0, 40);
  first.targets = in.targets.row_range(0, 40);
  std::vector<float> weights(130, 0.0F);
  std::fill_n(weights.begin(), 40, 0.5F);
  for (const double longest : {0.0, 1.0}) {
    const GpuOutcome all =
        outcome_of(c, in, DType::f32, longest, Tensor::from<float>({130}, weights).copy(gpu_));
    const NaiveSoftmax expected = naive_softmax<float>(of_40, first, 2 * 130.0);
    EXPECT_NEAR(all.loss, expected.loss, 1e-4 * (1 + expected.loss));
    EXPECT_LE(error_of(all.drows, expected.drows), 1e-4);
    std::vector<double> dvectors = expected.dvectors;
    dvectors.resize(130 * 50, 0.0);
    EXPECT_LE(error_of(all.dvectors, dvectors), 1e-4);
  }
}

TEST_F(FullSoftmaxOnGpu, HasTheSameBitsEachTime) {
  const SoftmaxCase c{5000, 5000, 128};
  const SoftmaxInputs in = softmax_inputs(c, DType::f32);
  for (const double longest : {0.0, 1.0}) {
    const GpuOutcome first = outcome_of(c, in, DType::bf16, longest),
                     second = outcome_of(c, in, DType::bf16, longest);
    EXPECT_EQ(first.loss, second.loss);
    EXPECT_EQ(first.dvectors, second.dvectors);
    EXPECT_EQ(first.drows, second.drows);
  }
}

TEST_F(FullSoftmaxOnGpu, GivesNanForATargetThatTheCatalogueDoesNotHave) {
  const SoftmaxCase c{4, 40, 8};
  SoftmaxInputs in = softmax_inputs(c, DType::f32);
  in.targets.mutable_data<std::int64_t>()[2] = (std::int64_t{1} << 40) + 1;
  EXPECT_TRUE(std::isnan(outcome_of(c, in, DType::f32).loss));
  EXPECT_TRUE(std::isnan(outcome_of(c, in, DType::bf16, 1).loss));
}

}  // namespace
}  // namespace hstu::testing_full_softmax_gpu
