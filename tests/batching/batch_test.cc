#include "hstu/batching/batch.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batching/plain_layout.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Batch, HoldsTypedColumnsByNameInOneSlab) {
  Batch batch;
  const auto a = batch.add<std::int32_t>("a", {3});
  std::copy_n(std::array{7, 8, 9}.begin(), 3, a.begin());
  const auto b = batch.add<double>("b", {2, 2});
  std::fill(b.begin(), b.end(), 0.5);
  batch.add<std::uint8_t>("none", {0});
  EXPECT_THAT(batch.values<std::int32_t>("a"), ElementsAre(7, 8, 9));
  EXPECT_THAT(batch.values<double>("b"), ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_TRUE(batch.values<std::uint8_t>("none").empty());
  EXPECT_EQ(batch.tensor("b").shape(), (Shape{2, 2}));
  EXPECT_EQ(batch.tensor("a").data<std::int32_t>()[2], 9);
  for (const Batch::Column& column : batch.columns()) {
    EXPECT_EQ(column.offset % Batch::kAlignment, 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch.slab().data() + column.offset) % Batch::kAlignment, 0u);
    EXPECT_LE(column.offset + static_cast<std::int64_t>(column.elements() * size_of(column.type)),
              static_cast<std::int64_t>(batch.slab().size()));
  }
}

TEST(Batch, NamesTheColumnThatIsMissingTakenOrOfAnotherType) {
  Batch batch;
  batch.add<float>("label", {1});
  const auto message = [](const auto& body) -> std::string {
    try {
      body();
    } catch (const InternalError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message([&] { batch.values<float>("lable"); }), HasSubstr("label"));
  EXPECT_THAT(message([&] { batch.values<double>("label"); }), HasSubstr("expected f64, found f32"));
  EXPECT_THAT(message([&] { batch.add<float>("label", {2}); }), HasSubstr("label"));
}

void expect_columns(const Batch& batch, const Context& context) {
  const Tensor a = batch.tensor("a"), b = batch.tensor("b");
  EXPECT_EQ(a.device(), context.device());
  const Tensor values = a.to_host(context.stream);
  EXPECT_THAT(std::span(values.data<std::int32_t>(), 3), ElementsAre(7, 8, 9));
  EXPECT_EQ(b.to_host(context.stream).data<double>()[1], 0.25);
  EXPECT_THAT(batch.values<std::int32_t>("a"), ElementsAre(7, 8, 9));
}

Batch two_columns() {
  Batch batch;
  std::ranges::copy(std::array{7, 8, 9}, batch.add<std::int32_t>("a", {3}).begin());
  std::ranges::copy(std::array{0.5, 0.25}, batch.add<double>("b", {2}).begin());
  return batch;
}

TEST(Batch, ACopyForTheHostIsTheBatchItself) {
  Batch batch = two_columns();
  batch.copy_to(host_context());
  expect_columns(batch, host_context());
  EXPECT_EQ(batch.tensor("a").raw(), batch.slab().data());
}

TEST(BatchOnGpu, TensorsAreInTheCopy) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Context context = make_context(Device::cuda(0));
  Batch batch = two_columns();
  batch.copy_to(context);
  expect_columns(batch, context);
  batch.clear();
  batch.add<float>("c", {1})[0] = 4;
  EXPECT_EQ(batch.tensor("c").device(), Device::host());
}

TEST(BatchOnGpu, KeepsTheMemoryOfItsCopy) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Context context = make_context(Device::cuda(0));
  Batch batch = two_columns();
  batch.copy_to(context);
  const std::int64_t used = context.memory->figures().in_use;
  const auto* const first = batch.tensor("a").raw();
  batch.clear();
  batch.add<std::int32_t>("a", {3})[0] = 5;
  batch.copy_to(context);
  EXPECT_EQ(batch.tensor("a").raw(), first);
  EXPECT_EQ(batch.tensor("a").to_host(context.stream).data<std::int32_t>()[0], 5);
  batch.clear();
  batch.add<float>("larger", {100'000})[99'999] = 8;
  batch.copy_to(context);
  EXPECT_EQ(batch.tensor("larger").to_host(context.stream).data<float>()[99'999], 8);
  EXPECT_LE(context.memory->figures().in_use, used + 2 * 400'000);
}

TEST(Batch, ReservedColumnsDoNotMove) {
  Batch batch;
  batch.reserve(Batch::column_bytes<float>(100) + Batch::column_bytes<std::int64_t>(1000));
  const auto first = batch.add<float>("first", {100});
  batch.add<std::int64_t>("second", {1000});
  EXPECT_EQ(batch.values<float>("first").data(), first.data());
}

TEST(Batch, KeepsItsMemoryAndForgetsItsColumns) {
  Batch batch;
  batch.add<float>("a", {5000});
  batch.samples = batch.supervised = 3;
  const auto* const slab = batch.slab().data();
  batch.clear();
  EXPECT_TRUE(batch.columns().empty());
  EXPECT_EQ(batch.samples + batch.supervised, 0);
  batch.add<float>("b", {5000});
  EXPECT_EQ(batch.slab().data(), slab);
}

// Two samples; the second has no history. Items 5, 70 and 90 with one attribute.
Samples few_samples() {
  Samples samples;
  samples.count = 2;
  samples.history_offsets = {0, 3, 3};
  samples.history_item = {0, 1, 1};
  samples.history_action = {1, 1, 1};
  samples.history_time = {10, 20, 30};
  samples.candidate_item = {1, 2};
  samples.candidate_time = {40, 50};
  samples.label = {1, 0};
  samples.user = {17, 18};
  samples.position = {403, 900};
  samples.items = {5, 70, 90};
  samples.attributes = {{8, 200, 8}};
  samples.context = {{-1, 3}};
  return samples;
}

TEST(FeatureColumns, GiveDistinctIdsAndTheIndexOfEachPlace) {
  Batch batch;
  LayoutScratch scratch;
  small::PlainLayout(SampleFeatures({"item", 100}, {{"artist", 1000}}, {{"user", 10}}))
      .lay_out(few_samples(), scratch, batch);
  EXPECT_THAT(batch.values<std::int64_t>("item.ids"), ElementsAre(5, 70, 90));
  EXPECT_THAT(batch.values<std::int64_t>("artist.ids"), ElementsAre(8, 200));
  EXPECT_THAT(batch.values<std::int32_t>("artist.index"), ElementsAre(0, 1, 0));
  EXPECT_THAT(batch.values<std::int64_t>("user.ids"), ElementsAre(-1, 3));
  EXPECT_THAT(batch.values<float>(kRealColumn), ElementsAre(1, 1));
}

// Trap: a bad id is counted once for each distinct item of a batch, but once per sample for contexts, so that
// the count depends on the batch size.
TEST(FeatureColumns, CountBadIdsByOccurrence) {
  Batch batch;
  LayoutScratch scratch;
  small::PlainLayout(SampleFeatures({"item", 60}, {{"artist", 100}}, {{"user", 3}}))
      .lay_out(few_samples(), scratch, batch);
  ASSERT_EQ(batch.bad_ids.size(), 3u);
  EXPECT_EQ(batch.bad_ids[0].feature, "item");  // 70 in two events and a candidate, 90 in a candidate
  EXPECT_EQ(batch.bad_ids[0].occurrences, 4);
  EXPECT_EQ(batch.bad_ids[0].first_id, 70);
  EXPECT_EQ(batch.bad_ids[0].first_user, 17);
  EXPECT_EQ(batch.bad_ids[0].first_position, 403);
  EXPECT_EQ(batch.bad_ids[1].feature, "artist");  // 200, of item 70
  EXPECT_EQ(batch.bad_ids[1].occurrences, 3);
  EXPECT_EQ(batch.bad_ids[2].feature, "user");  // -1 and 3
  EXPECT_EQ(batch.bad_ids[2].occurrences, 2);
  EXPECT_EQ(batch.bad_ids[2].first_id, -1);
}

}  // namespace
}  // namespace hstu
