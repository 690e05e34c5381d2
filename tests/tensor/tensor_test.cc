#include "hstu/tensor/tensor.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "support/tensor_values.h"

namespace hstu {
namespace {

using testing::values_of;

Tensor counting(Shape shape) {
  Tensor tensor = Tensor::empty(shape, DType::f32);
  std::iota(tensor.mutable_data<float>(), tensor.mutable_data<float>() + tensor.size(), 0.0f);
  return tensor;
}

TEST(Tensor, KnowsItsShapeTypeAndPlace) {
  const Tensor tensor = Tensor::zeros({2, 3, 4}, DType::bf16);
  EXPECT_EQ(tensor.size(), 24);
  EXPECT_EQ(tensor.rows(), 2);
  EXPECT_EQ(tensor.cols(), 12);
  EXPECT_EQ(tensor.bytes(), 48u);
  EXPECT_EQ(tensor.device(), Device::host());
  EXPECT_TRUE(tensor.defined());
  EXPECT_FALSE(Tensor().defined());
  EXPECT_EQ(static_cast<float>(tensor.data<BFloat16>()[23]), 0.0f);
}

TEST(Tensor, EmptyExtentsAndScalarsHaveRowsAndColumns) {
  const Tensor none = Tensor::zeros({0, 7}, DType::i32);
  EXPECT_TRUE(none.defined());
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.cols(), 7);
  EXPECT_EQ(none.copy().size(), 0);
  const Tensor scalar = Tensor::zeros({}, DType::f64);
  EXPECT_EQ(scalar.size(), 1);
  EXPECT_EQ(scalar.rows(), 1);
  EXPECT_THROW(Tensor::empty({2, -1}, DType::f32), InternalError);
}

TEST(Tensor, RefusesAnotherType) {
  Tensor tensor = Tensor::zeros({2}, DType::f32);
  EXPECT_THROW(tensor.data<double>(), InternalError);
  EXPECT_THROW(tensor.mutable_data<std::int32_t>(), InternalError);
  EXPECT_THROW(tensor.data<Float16>(), InternalError);
}

static_assert(std::is_same_v<decltype(std::declval<const Tensor&>().data<float>()), const float*>);
static_assert(std::is_same_v<decltype(std::declval<Tensor&>().data<float>()), const float*>);
static_assert(std::is_same_v<decltype(std::declval<Tensor&>().mutable_data<float>()), float*>);
static_assert(std::is_same_v<decltype(std::declval<const Tensor&>().raw()), const std::byte*>);

template <typename T>
concept CanBeWritten = requires(T t) {
  t.fill_zero();
}
|| requires(T t) {
  t.template mutable_data<float>();
};
static_assert(!CanBeWritten<const Tensor&> && CanBeWritten<Tensor&>);

TEST(Tensor, CopiesShareMemoryAndCopyDoesNot) {
  Tensor tensor = counting({2, 2});
  const Tensor shared = tensor, own = tensor.copy();
  tensor.mutable_data<float>()[0] = 9;
  EXPECT_EQ(values_of<float>(shared), (std::vector<float>{9, 1, 2, 3}));
  EXPECT_EQ(values_of<float>(own), (std::vector<float>{0, 1, 2, 3}));
}

TEST(Tensor, RowRangesAndReshapesAreViews) {
  Tensor tensor = counting({3, 2});
  Tensor rows = tensor.row_range(1, 3);
  EXPECT_EQ(rows.shape(), (Shape{2, 2}));
  EXPECT_EQ(values_of<float>(rows), (std::vector<float>{2, 3, 4, 5}));
  rows.fill_zero();
  EXPECT_EQ(values_of<float>(tensor.reshaped({6})), (std::vector<float>{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(values_of<float>(rows.row_range(0, 0)), std::vector<float>{});
  EXPECT_THROW(tensor.row_range(2, 4), InternalError);
  EXPECT_THROW(tensor.reshaped({4}), InternalError);
}

TEST(Tensor, AViewKeepsTheOwnerOfItsMemoryAlive) {
  auto slab = std::make_shared<std::vector<std::int32_t>>(10);
  std::iota(slab->begin(), slab->end(), 0);
  std::weak_ptr<std::vector<std::int32_t>> alive = slab;
  Tensor rest;
  {
    const Tensor view = Tensor::view({4}, DType::i32, slab->data() + 3, slab);
    EXPECT_EQ(view.data<std::int32_t>()[0], 3);
    slab.reset();
    rest = view.row_range(2, 4);
  }
  ASSERT_FALSE(alive.expired());
  EXPECT_EQ(rest.data<std::int32_t>()[1], 6);
  rest = Tensor();
  EXPECT_TRUE(alive.expired());
  EXPECT_THROW(Tensor::view({1}, DType::i32, nullptr, nullptr), InternalError);
}

TEST(Tensor, CopyFromChecksShapeAndType) {
  Tensor tensor = Tensor::zeros({2, 2}, DType::f32);
  tensor.copy_from(counting({2, 2}));
  EXPECT_EQ(values_of<float>(tensor), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_THROW(tensor.copy_from(counting({4})), InternalError);
  EXPECT_THROW(tensor.copy_from(Tensor::zeros({2, 2}, DType::i32)), InternalError);
}

TEST(Tensor, TakesItsMemoryFromTheContextsPoolAndGivesItBack) {
  const Context context = make_context(Device::host(), 1 << 20);
  {
    const Tensor tensor = Tensor::empty({1000}, DType::f64, context);
    EXPECT_EQ(context.memory->figures().in_use, 8000);
    const std::vector<Tensor> same(2, tensor);
    EXPECT_EQ(same.front().raw(), tensor.raw());
    EXPECT_EQ(context.memory->figures().in_use, 8000);
  }
  EXPECT_EQ(context.memory->figures().in_use, 0);
  EXPECT_THROW(Tensor::empty({1 << 20}, DType::f64, context), OutOfMemory);
}

TEST(Tensor, OfTheHostIsItsOwnHostForm) {
  const Tensor tensor = counting({2});
  EXPECT_EQ(tensor.to_host(Stream()).raw(), tensor.raw());
}

TEST(TensorOnGpu, GoesThereAndBack) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no NVIDIA GPU can be used here";
  const Context context = make_context(Device::cuda(0));
  const Tensor host = counting({300, 7});
  Tensor there = host.copy(context);
  EXPECT_EQ(there.device(), Device::cuda(0));
  EXPECT_THROW(there.fill_zero(), InternalError);  // the host's stream
  Tensor other = Tensor::zeros({300, 7}, DType::f32, context);
  EXPECT_EQ(values_of<float>(other.to_host(context.stream)), std::vector<float>(2100));
  other.copy_from(there, context.stream);
  EXPECT_EQ(values_of<float>(other.row_range(10, 300).to_host(context.stream)),
            values_of<float>(host.row_range(10, 300)));
  EXPECT_EQ(values_of<float>(there.copy(context).to_host(context.stream)), values_of<float>(host));
}

}  // namespace
}  // namespace hstu
