#include <bit>

#include <nlohmann/json.hpp>

#include "hstu/base/error.h"
#include "hstu/checkpoint/safetensors.h"
#include "hstu/checkpoint/safetensors_dtype.h"

namespace hstu {

static_assert(std::endian::native == std::endian::little,
              "safetensors files are little-endian; this program writes its numbers unconverted");

SafetensorsWriter::SafetensorsWriter(const Path& path, const std::vector<TensorSpec>& tensors) : file_(path) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::uint64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    require(!header.contains(tensor.name), "two tensors are called \"{}\"", tensor.name);
    require(offset % size_of(tensor.dtype) == 0, "tensor \"{}\" would not be aligned: order by element size",
            tensor.name);
    std::uint64_t size = size_of(tensor.dtype);
    for (const std::int64_t extent : tensor.shape) size *= static_cast<std::uint64_t>(extent);
    header[tensor.name] = {{"dtype", safetensors_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // Data begins at a multiple of 8.
  const std::uint64_t length = text.size();
  write(&length, sizeof length);
  write(text.data(), text.size());
  expected_bytes_ = file_.size() + offset;
}

void SafetensorsWriter::write(const void* data, std::size_t size) {
  checksum_.add(data, size);
  file_.write(data, size);
}

void SafetensorsWriter::close() {
  require(file_.size() == expected_bytes_, "{}: expected {} bytes, found {} written", file_.path().string(),
          expected_bytes_, file_.size());
  file_.close();
}

}  // namespace hstu
