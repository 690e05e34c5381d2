// Valid Parquet files with content that a log should not have: any type, nulls, any number. The checks of raw
// columns reject them with the column, or return columns of the right length.
#include <memory>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <parquet/arrow/writer.h>

#include "fuzz/harness.h"
#include "hstu/columns/column_source.h"
#include "hstu/columns/raw_checks.h"
#include "hstu/events/condition.h"

namespace {

using Bytes = FuzzedDataProvider;

template <typename Builder, typename Draw>
std::shared_ptr<arrow::Array> array_of(Builder& builder, int rows, Bytes& bytes, const Draw& draw) {
  for (int r = 0; r < rows; ++r) {
    const bool null = bytes.ConsumeIntegralInRange(0, 7) == 0;
    hstu::require((null ? builder.AppendNull() : builder.Append(draw())).ok(), "Arrow refused a value");
  }
  return builder.Finish().ValueOrDie();
}

template <typename Builder, typename T>
std::shared_ptr<arrow::Array> numbers(int rows, Bytes& bytes) {
  Builder builder;
  return array_of(builder, rows, bytes, [&] { return bytes.ConsumeIntegral<T>(); });
}

std::shared_ptr<arrow::Array> draw_column(int rows, Bytes& bytes) {
  switch (bytes.ConsumeIntegralInRange(0, 9)) {
    case 0:
      return numbers<arrow::Int8Builder, std::int8_t>(rows, bytes);
    case 1:
      return numbers<arrow::UInt16Builder, std::uint16_t>(rows, bytes);
    case 2:
      return numbers<arrow::UInt32Builder, std::uint32_t>(rows, bytes);
    case 3:
      return numbers<arrow::Int64Builder, std::int64_t>(rows, bytes);
    case 4:
      return numbers<arrow::UInt64Builder, std::uint64_t>(rows, bytes);
    case 5: {
      arrow::DoubleBuilder builder;
      return array_of(builder, rows, bytes, [&] { return bytes.ConsumeFloatingPoint<double>(); });
    }
    case 6: {
      arrow::StringBuilder builder;
      return array_of(builder, rows, bytes, [&] { return bytes.ConsumeRandomLengthString(6); });
    }
    case 7: {
      arrow::BooleanBuilder builder;
      return array_of(builder, rows, bytes, [&] { return bytes.ConsumeBool(); });
    }
    case 8: {
      arrow::TimestampBuilder builder(arrow::timestamp(arrow::TimeUnit::MICRO), arrow::default_memory_pool());
      return array_of(builder, rows, bytes, [&] { return bytes.ConsumeIntegral<std::int64_t>(); });
    }
    default: {
      arrow::BinaryBuilder builder;  // a type that no column may have
      return array_of(builder, rows, bytes, [&] { return bytes.ConsumeRandomLengthString(4); });
    }
  }
}

void read_all(const hstu::Path& path, const hstu::Condition& condition) {
  using namespace hstu;
  const std::vector<std::string> columns{"a"};
  const auto source = open_columns(path, columns);
  RawBatch batch;
  while (source->next(batch)) {
    const RawColumn& column = batch.columns.at(0);
    const std::size_t length =
        column.kind == RawColumn::Kind::kReal ? column.reals.size() : column.integers.size();
    require(length == static_cast<std::size_t>(batch.rows), "a column of another length");
    std::vector<std::uint8_t> mask(length, 1);
    fuzz::accept_or_refuse([&] { keep_matching(condition, column, batch.file, mask); });
    fuzz::accept_or_refuse([&] { check_no_null(batch, column, ""); });
    fuzz::accept_or_refuse([&] { check_not_negative(batch, column, "ids"); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  Bytes bytes(data, size);
  const Condition condition{.column = "a",
                            .comparison = bytes.PickValueInArray({Comparison::kEqual, Comparison::kAtLeast}),
                            .value = bytes.ConsumeRandomLengthString(6)};
  const int rows = bytes.ConsumeIntegralInRange(0, 40);
  const auto array = draw_column(rows, bytes);
  const auto table = arrow::Table::Make(arrow::schema({arrow::field("a", array->type())}), {array});
  const Path path = fuzz::fresh_folder() / "log.parquet";
  const auto file = arrow::io::FileOutputStream::Open(path.string()).ValueOrDie();
  require(
      parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file, 16).ok() && file->Close().ok(),
      "Arrow cannot write the table");
  return fuzz::accept_or_refuse([&] { read_all(path, condition); });
}
