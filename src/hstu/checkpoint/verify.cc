#include "hstu/checkpoint/verify.h"

#include <algorithm>
#include <system_error>

#include "hstu/base/error.h"
#include "hstu/base/finite.h"
#include "hstu/checkpoint/safetensors.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

void verify_files(const Path& folder, const CheckpointManifest& manifest) {
  for (const auto& [name, file] : manifest.files) {
    const Path path = folder / name;
    std::error_code error;
    const auto size = fs::file_size(path, error);
    check(!error, "{} is missing: {}", path.string(), error.message());
    check(size == file.bytes, "{}: expected {} bytes, found {}: it is torn", path.string(), file.bytes, size);
    check(file_checksum(path) == file.checksum,
          "{} was altered after it was written: its checksum is not the manifest's", path.string());
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).generic_string();
    check(entry.is_directory() || name == kManifestName || manifest.files.contains(name),
          "{} does not belong to this checkpoint: remove it", entry.path().string());
  }
}

// Rows of a table are named by their id.
std::string name_of(const SafetensorsFile& file, const TensorSpec& tensor, std::int64_t row) {
  const auto ids = std::find_if(file.tensors().begin(), file.tensors().end(), [&](const TensorSpec& other) {
    return other.name == "ids" && other.dtype == DType::i64 && other.shape == Shape{tensor.shape.front()};
  });
  if (ids == file.tensors().end()) return fmt::format("tensor \"{}\"", tensor.name);
  const std::int64_t id = file.values<std::int64_t>("ids", ids->shape)[static_cast<std::size_t>(row)];
  return fmt::format("tensor \"{}\", id {}", tensor.name, id);
}

template <typename Float>
void verify_values(const Path& path, const SafetensorsFile& file, const TensorSpec& tensor) {
  const auto values = file.values<Float>(tensor.name, tensor.shape);
  const auto n = static_cast<std::int64_t>(values.size());
  const std::int64_t place = first_not_finite(values.data(), n);
  if (place == n) return;
  const std::int64_t row = tensor.shape.empty() ? 0 : place / (n / tensor.shape.front());
  fail("{}: {}: a value is {}: training had failed before this checkpoint was written", path.string(),
       tensor.shape.empty() ? fmt::format("tensor \"{}\"", tensor.name) : name_of(file, tensor, row),
       values[static_cast<std::size_t>(place)]);
}

}  // namespace

void verify_checkpoint(const Path& folder, const CheckpointManifest& manifest) {
  verify_files(folder, manifest);
  for (const auto& [name, unused] : manifest.files) {
    const SafetensorsFile file(folder / name);
    for (const TensorSpec& tensor : file.tensors()) {
      if (tensor.dtype == DType::f32) verify_values<float>(folder / name, file, tensor);
      if (tensor.dtype == DType::f64) verify_values<double>(folder / name, file, tensor);
    }
  }
}

}  // namespace hstu
