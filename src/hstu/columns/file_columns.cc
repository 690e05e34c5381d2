#include "hstu/columns/file_columns.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <arrow/api.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include "hstu/base/error.h"
#include "hstu/columns/arrow_column.h"
#include "hstu/columns/csv_source.h"
#include "hstu/columns/file_format.h"

namespace hstu {
namespace {

std::shared_ptr<arrow::Schema> read_arrow_schema(const Path& file) {
  try {
    const auto metadata = parquet::ParquetFileReader::OpenFile(file.string())->metadata();
    std::shared_ptr<arrow::Schema> schema;
    const arrow::Status status =
        parquet::arrow::FromParquetSchema(metadata->schema(), parquet::default_arrow_reader_properties(),
                                          metadata->key_value_metadata(), &schema);
    if (!status.ok()) throw parquet::ParquetException(status.message());
    return schema;
  } catch (const parquet::ParquetException& error) {
    fail("{}: cannot be read as Parquet (it is truncated, damaged or of another format): {}", file.string(),
         error.what());
  }
}

}  // namespace

std::vector<FileColumn> list_columns(const Path& file, const CsvFormat& format) {
  std::vector<FileColumn> columns;
  if (format_of(file) != FileFormat::kParquet) {
    const std::vector<std::string> names = list_csv_columns(file, format);
    for (const std::string& name : names)
      columns.push_back(
          {.name = name, .type_name = "text", .readable = std::count(names.begin(), names.end(), name) == 1});
    return columns;
  }
  const auto schema = read_arrow_schema(file);
  for (const auto& field : schema->fields()) {
    const arrow::DataType& type = *field->type();
    // Bytes may be texts that are not marked, or anything else: nobody should guess from them.
    const bool binary = type.id() == arrow::Type::BINARY || type.id() == arrow::Type::LARGE_BINARY;
    const bool once = schema->GetAllFieldIndices(field->name()).size() == 1;
    const bool readable = once && is_readable(type);
    columns.push_back({.name = field->name(),
                       .type_name = field->type()->ToString(),
                       .readable = readable && !binary,
                       .bytes = readable && binary});
  }
  return columns;
}

}  // namespace hstu
