#include "hstu/columns/parquet_vectors.h"

#include <limits>

#include <gmock/gmock.h>

#include "columns/parquet_files.h"
#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/columns/npy_vectors.h"
#include "hstu/dataset/names.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Lists = std::vector<std::vector<std::optional<double>>>;

// Lists of `builder`, whose values are of a builder of type Values.
template <typename Values, typename Builder>
Array lists_of(Builder& builder, const Lists& lists) {
  auto& values = static_cast<Values&>(*builder.value_builder());
  for (const auto& list : lists) {
    EXPECT_TRUE(builder.Append().ok());
    for (const auto& value : list)
      EXPECT_TRUE(
          (value ? values.Append(static_cast<typename Values::value_type>(*value)) : values.AppendNull())
              .ok());
  }
  return builder.Finish().ValueOrDie();
}
Array lists(const Lists& values) {
  arrow::ListBuilder builder(arrow::default_memory_pool(), std::make_shared<arrow::FloatBuilder>());
  return lists_of<arrow::FloatBuilder>(builder, values);
}
Array large_lists(const Lists& values) {
  arrow::LargeListBuilder builder(arrow::default_memory_pool(), std::make_shared<arrow::DoubleBuilder>());
  return lists_of<arrow::DoubleBuilder>(builder, values);
}
Array fixed_lists(const Lists& values) {
  arrow::FixedSizeListBuilder builder(arrow::default_memory_pool(), std::make_shared<arrow::FloatBuilder>(),
                                      2);
  return lists_of<arrow::FloatBuilder>(builder, values);
}

class ParquetVectors : public testing::Test {
 protected:
  std::int64_t convert(const Array& ids, const Array& vectors, const VectorColumns& columns = {"id", "v"}) {
    write_parquet(folder_ / "a.parquet", {{"v", vectors}, {"other", ids}, {"id", ids}}, 2);
    return write_vectors(folder_ / "a.parquet", columns, folder_ / "rows.npy", folder_ / "ids.npy");
  }
  template <typename T>
  std::vector<T> read(const char* name, std::vector<std::int64_t> shape) const {
    const MappedFile file(folder_ / name);
    const NpyHeader header = parse_npy_header(file.bytes(), name);
    EXPECT_EQ(header.type, npy_type<T>());
    EXPECT_EQ(header.shape, shape);
    const auto* const begin = reinterpret_cast<const T*>(file.bytes().data() + header.data_offset);
    return {begin, begin + header.count()};
  }
  std::string message(const Array& ids, const Array& vectors, const VectorColumns& columns = {"id", "v"}) {
    try {
      convert(ids, vectors, columns);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  Path folder_ = temporary_folder();
};

TEST_F(ParquetVectors, BecomeRowsInTheOrderOfTheTable) {
  const Lists values{{1.5, -2}, {0.25, 3}, {4, 5}};
  for (const auto& make : {&lists, &large_lists, &fixed_lists}) {
    EXPECT_EQ(convert(array<arrow::UInt32Type>({9, 4'000'000'000, 1}), make(values)), 3);
    EXPECT_THAT(read<float>("rows.npy", {3, 2}), ElementsAre(1.5f, -2, 0.25f, 3, 4, 5));
    EXPECT_THAT(read<std::int64_t>("ids.npy", {3}), ElementsAre(9, 4'000'000'000, 1));
  }
}

TEST_F(ParquetVectors, HaveIdsOfTextsAsALogOfTextsHas) {
  EXPECT_EQ(convert(texts({"shoe", "17"}), lists({{1, 2}, {3, 4}})), 2);
  EXPECT_THAT(read<std::int64_t>("ids.npy", {2}), ElementsAre(id_of_text("shoe"), id_of_text("17")));
}

TEST_F(ParquetVectors, NameTheRowThatIsWrong) {
  const Array ids = array<arrow::Int64Type>({1, 2, 3});
  const Array good = lists({{1, 2}, {3, 4}, {5, 6}});
  EXPECT_THAT(message(ids, lists({{1, 2}, {3, 4}, {5}})),
              HasSubstr("column v, row 2: expected 2 values, found 1"));
  EXPECT_THAT(message(ids, lists({{}, {3, 4}, {5, 6}})), HasSubstr("row 0: expected 1 values, found 0"));
  EXPECT_THAT(message(ids, lists({{1, 2}, {3, {}}, {5, 6}})),
              HasSubstr("row 1: expected a value, found null"));
  EXPECT_THAT(message(array<arrow::Int64Type>({1, {}, 3}), good), HasSubstr("column id, row 1"));
  EXPECT_THAT(message(array<arrow::UInt64Type>({1, 2, std::numeric_limits<std::uint64_t>::max()}), good),
              HasSubstr("column id, row 2: the id has more than 63 bits"));
  EXPECT_THAT(message(array<arrow::DoubleType>({1.0, 2.0, 3.0}), good),
              HasSubstr("expected integers or texts, found double"));
  EXPECT_THAT(message(ids, ids), HasSubstr("expected lists of floats, found int64"));
  EXPECT_THAT(message(ids, good, {"id", "vv"}), AllOf(HasSubstr("\"vv\""), HasSubstr("did you mean \"v\"?")));
  EXPECT_THAT(message(array<arrow::Int64Type>({}), lists({})), HasSubstr("expected rows, found none"));
}

TEST_F(ParquetVectors, OfNumpyComeBackAsTheyWere) {
  const std::vector<float> rows{1.5F, -2, 0.25F, 3, 4, 1e-38F};
  const std::vector<std::int64_t> ids{7, std::int64_t{1} << 40, 2}, shape{3, 2};
  OutputFile file(folder_ / "in.npy");
  file.write(npy_header(npy_type<float>(), shape));
  file.write(rows.data(), rows.size() * sizeof(float));
  file.close();
  write_npy(folder_ / "in_ids.npy", ids);
  const VectorColumns columns{"item", "embedding"};
  EXPECT_EQ(
      write_vectors_as_parquet(folder_ / "in.npy", folder_ / "in_ids.npy", columns, folder_ / "b.parquet"),
      3);
  EXPECT_EQ(write_vectors(folder_ / "b.parquet", columns, folder_ / "rows.npy", folder_ / "ids.npy"), 3);
  EXPECT_EQ(read<float>("rows.npy", {3, 2}), rows);
  EXPECT_EQ(read<std::int64_t>("ids.npy", {3}), ids);
}

TEST_F(ParquetVectors, OfNumpyMustHaveAnIdForEachRowOfFloats) {
  const std::vector<std::int64_t> ids{7};
  write_npy(folder_ / "ids.npy", ids);
  write_npy(folder_ / "flat.npy", std::vector<float>{1, 2});
  const auto refused = [&](const char* rows) {
    try {
      write_vectors_as_parquet(folder_ / rows, folder_ / "ids.npy", {"id", "v"}, folder_ / "c.parquet");
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refused("flat.npy"), HasSubstr("two dimensions"));
  EXPECT_THAT(refused("ids.npy"), HasSubstr("two dimensions"));
  OutputFile file(folder_ / "two.npy");
  file.write(npy_header(npy_type<float>(), std::vector<std::int64_t>{2, 1}));
  file.write(std::vector<float>{1, 2}.data(), 8);
  file.close();
  EXPECT_THAT(refused("two.npy"), HasSubstr("2 rows"));
}

}  // namespace
}  // namespace hstu
