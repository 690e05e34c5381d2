#include "hstu/dataset/weight_column.h"

#include <span>
#include <vector>

#include "hstu/base/npy.h"
#include "hstu/dataset/open_column.h"

namespace hstu {
namespace {

std::string header(std::int64_t count) {
  return npy_header(npy_type<float>(), std::span(&count, 1));
}

}  // namespace

WeightWriter::WeightWriter(const Path& path) : file_(path) {
  file_.write(header(0));  // The count is set at the end.
}

void WeightWriter::append(const IntegerColumn& bits) {
  std::vector<float> weights;
  weights.reserve(static_cast<std::size_t>(bits.size()));
  bits.visit([&](const auto& values) {
    for (const auto value : values) weights.push_back(weight_of_bits(static_cast<std::int64_t>(value)));
  });
  file_.write(weights.data(), weights.size() * sizeof(float));
  checksum_.add(weights.data(), weights.size() * sizeof(float));
  count_ += bits.size();
}

ColumnInfo WeightWriter::close() {
  const std::string text = header(count_);
  file_.overwrite(0, text.data(), text.size());
  file_.close();
  return {.type = npy_type<float>(),
          .count = count_,
          .bytes = static_cast<std::int64_t>(file_.size()),
          .checksum = checksum_.text(),
          .min = {},
          .max = {}};
}

MappedColumn open_weights(const Path& folder, const Manifest& manifest, const std::string& file) {
  const Path path = column_file(folder, manifest, file);
  MappedColumn column = MappedColumn::bits_of(path, npy_type<float>());
  expect_fit(path, manifest.columns.at(file), column.type(), column.size());
  return column;
}

}  // namespace hstu
