#include "hstu/tokenizer/item_vectors.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/checkpoint/safetensors.h"

namespace hstu {
namespace {

// Rows in the order of the file.
struct Rows {
  std::vector<float> values;
  std::int64_t count = 0, width = 0;
};

template <typename T>
Rows rows_of(const T* data, std::int64_t count, std::int64_t width, const Path& path) {
  check(width >= 1, "{}: vectors have no numbers", path.string());
  Rows rows{
      .values = std::vector<float>(static_cast<std::size_t>(count * width)), .count = count, .width = width};
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    rows.values[i] = static_cast<float>(data[i]);
    check(std::isfinite(rows.values[i]), "{}: row {} has a value that is NaN or infinite", path.string(),
          static_cast<std::int64_t>(i) / width);
  }
  return rows;
}

Rows read_npy_rows(const Path& path) {
  const MappedFile file(path);
  const NpyHeader header = parse_npy_header(file.bytes(), path);
  check(header.shape.size() == 2, "{}: expected vectors (V, D), found {} dimensions", path.string(),
        header.shape.size());
  const std::byte* const data = file.bytes().data() + header.data_offset;
  if (header.type == npy_type<float>())
    return rows_of(reinterpret_cast<const float*>(data), header.shape[0], header.shape[1], path);
  check(header.type == npy_type<double>(), "{}: expected numbers of type {} or {}, found {}", path.string(),
        npy_type<float>(), npy_type<double>(), header.type);
  return rows_of(reinterpret_cast<const double*>(data), header.shape[0], header.shape[1], path);
}

Rows read_safetensors_rows(const Path& path) {
  const SafetensorsFile file(path);
  const TensorSpec* found = nullptr;
  for (const TensorSpec& tensor : file.tensors()) {
    if (tensor.shape.size() != 2) continue;
    check(found == nullptr, "{}: expected one tensor of two dimensions, found \"{}\" and \"{}\"",
          path.string(), found == nullptr ? "" : found->name, tensor.name);
    found = &tensor;
  }
  check(found != nullptr, "{}: expected a tensor of vectors (V, D)", path.string());
  const Shape& shape = found->shape;
  if (found->dtype == DType::f64)
    return rows_of(file.values<double>(found->name, shape).data(), shape[0], shape[1], path);
  return rows_of(file.values<float>(found->name, shape).data(), shape[0], shape[1], path);
}

std::vector<std::int64_t> read_ids(const Path& path) {
  const MappedFile file(path);
  if (parse_npy_header(file.bytes(), path).type == npy_type<std::int32_t>()) {
    const NpyColumn<std::int32_t> ids(path);
    return {ids.values().begin(), ids.values().end()};
  }
  const NpyColumn<std::int64_t> ids(path);
  return {ids.values().begin(), ids.values().end()};
}

// Sorts by id.
ItemVectors sorted(const Rows& rows, const std::vector<std::int64_t>& ids, const Path& path) {
  check(std::ssize(ids) == rows.count, "{}: expected ids of {} vectors, found {}", path.string(), rows.count,
        ids.size());
  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ids[a] < ids[b]; });
  ItemVectors vectors{.items = {}, .values = {}, .width = rows.width};
  for (const std::size_t row : order) {
    check(ids[row] >= 0, "{}: row {}: expected an id of at least 0, found {}", path.string(), row, ids[row]);
    check(vectors.items.empty() || vectors.items.back() < ids[row], "{}: row {}: the id {} occurs twice",
          path.string(), row, ids[row]);
    vectors.items.push_back(ids[row]);
    const auto from = rows.values.begin() + static_cast<std::ptrdiff_t>(row) * rows.width;
    vectors.values.insert(vectors.values.end(), from, from + rows.width);
  }
  return vectors;
}

}  // namespace

ItemVectors read_item_vectors(const Path& vectors, const Path& ids) {
  if (std::filesystem::is_directory(vectors)) {
    if (!ids.empty())
      fail_usage("--ids: the folder {} has the ids of its vectors: leave it out", vectors.string());
    return read_item_vectors(vectors / "items.f32.npy", vectors / "ids.i64.npy");
  }
  const std::string ending = vectors.extension().string();
  if (ending != ".npy" && ending != ".safetensors")
    fail_usage(
        "--vectors {}: expected .npy, .safetensors, or a folder of hstu export --vectors (hstu prepare "
        "to-npy "
        "reads Parquet)",
        vectors.string());
  const Rows rows = ending == ".npy" ? read_npy_rows(vectors) : read_safetensors_rows(vectors);
  if (!ids.empty()) return sorted(rows, read_ids(ids), ids);
  std::vector<std::int64_t> counted(static_cast<std::size_t>(rows.count));
  std::iota(counted.begin(), counted.end(), std::int64_t{0});
  return sorted(rows, counted, vectors);
}

}  // namespace hstu
