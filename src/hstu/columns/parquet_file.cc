#include "hstu/columns/parquet_file.h"

#include <utility>

#include <arrow/io/file.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

namespace hstu {

struct ParquetFile::Writer {
  std::shared_ptr<arrow::io::FileOutputStream> stream;
  std::unique_ptr<parquet::arrow::FileWriter> file;
};

void ParquetFile::check_status(const arrow::Status& status) const {
  check(status.ok(), "cannot write {}: {}", path_.string(), status.ToString());
}

ParquetFile::ParquetFile(Path path, std::shared_ptr<arrow::Schema> schema)
    : path_(std::move(path)), schema_(std::move(schema)), writer_(std::make_unique<Writer>()) {
  auto stream = arrow::io::FileOutputStream::Open(path_.string());
  check_status(stream.status());
  writer_->stream = std::move(stream).ValueUnsafe();
  parquet::WriterProperties::Builder properties;
  properties.compression(parquet::Compression::ZSTD)->compression_level(1);
  // Few values of these columns occur twice: a dictionary would not reduce the size.
  for (const char* name : {"timestamp", "probability"}) properties.disable_dictionary(name);
  properties.encoding("timestamp", parquet::Encoding::DELTA_BINARY_PACKED);
  parquet::ArrowWriterProperties::Builder arrow_properties;
  arrow_properties.store_schema();  // readers get dictionary strings again
  auto file = parquet::arrow::FileWriter::Open(*schema_, arrow::system_memory_pool(), writer_->stream,
                                               properties.build(), arrow_properties.build());
  check_status(file.status());
  writer_->file = std::move(file).ValueUnsafe();
}

ParquetFile::~ParquetFile() = default;

void ParquetFile::write(const std::vector<std::shared_ptr<arrow::Array>>& columns) {
  const auto table = arrow::Table::Make(schema_, columns);
  check_status(table->Validate());
  if (table->num_rows() > 0) check_status(writer_->file->WriteTable(*table, table->num_rows()));
}

void ParquetFile::close() {
  check_status(writer_->file->Close());
  check_status(writer_->stream->Close());
}

}  // namespace hstu
