#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "hstu/base/error.h"
#include "hstu/base/json_text.h"
#include "hstu/checkpoint/safetensors.h"
#include "hstu/checkpoint/safetensors_dtype.h"

namespace hstu {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the limit of the format's own library

[[noreturn]] void refuse(const Path& path, const std::string& what) {
  fail("{} is not a whole safetensors file: {}", path.string(), what);
}

// The header as JSON; `data` receives the bytes after it.
json parse_header(const Path& path, std::span<const std::byte> file, std::span<const std::byte>* data) {
  std::uint64_t length = 0;
  if (file.size() < sizeof length)
    refuse(path, fmt::format("expected at least 8 bytes, found {}", file.size()));
  std::memcpy(&length, file.data(), sizeof length);
  if (length > kMaxHeader || length > file.size() - sizeof length)
    refuse(path, fmt::format("its header claims {} bytes, the file has {}", length, file.size()));
  const char* text = reinterpret_cast<const char*>(file.data()) + sizeof length;
  *data = file.subspan(sizeof length + length);

  std::set<std::string> names;
  std::string twice;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1 && !names.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  check_json_nesting({text, length}, path);
  json header = json::parse(text, text + length, watch, /*allow_exceptions=*/false);
  if (!header.is_object()) refuse(path, "its header is not a JSON object");
  if (!twice.empty()) refuse(path, fmt::format("tensor \"{}\" occurs twice in its header", twice));
  return header;
}

std::int64_t extent(const json& value) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMax) return -1;
  return static_cast<std::int64_t>(value.get<std::uint64_t>());
}

// Two offsets, or {-1, -1}.
std::pair<std::int64_t, std::int64_t> offsets_of(const json& entry) {
  const auto found = entry.find("data_offsets");
  if (found == entry.end() || !found->is_array() || found->size() != 2) return {-1, -1};
  const std::int64_t begin = extent((*found)[0]), end = extent((*found)[1]);
  return begin <= end ? std::pair{begin, end} : std::pair<std::int64_t, std::int64_t>{-1, -1};
}

TensorSpec parse_spec(const Path& path, const std::string& name, const json& entry) {
  const auto type = entry.find("dtype"), shape = entry.find("shape");
  if (type == entry.end() || !type->is_string() || shape == entry.end() || !shape->is_array())
    refuse(path, fmt::format("tensor \"{}\" has no dtype or no shape", name));
  const auto dtype = safetensors_dtype(type->get<std::string>());
  if (!dtype) {
    refuse(path, fmt::format("tensor \"{}\" has type {}, hstu reads F32, F64, I32, I64 and U8", name,
                             type->get<std::string>()));
  }
  if (shape->size() > Shape::kMostExtents)
    refuse(path, fmt::format("tensor \"{}\" has {} dimensions, hstu reads at most {}", name, shape->size(),
                             Shape::kMostExtents));
  TensorSpec spec{name, *dtype, {}};
  for (const json& value : *shape) {
    spec.shape.push_back(extent(value));
    if (spec.shape.back() < 0) refuse(path, fmt::format("tensor \"{}\" has a wrong shape", name));
  }
  return spec;
}

// Bytes of a tensor, or -1 when they do not fit into 63 bits.
std::int64_t bytes_of(const TensorSpec& spec) {
  auto bytes = static_cast<std::int64_t>(size_of(spec.dtype));
  for (const std::int64_t e : spec.shape)
    if (__builtin_mul_overflow(bytes, e, &bytes)) return -1;
  return bytes;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const Path& path) : path_(path), file_(path) {
  std::span<const std::byte> data;
  const json header = parse_header(path, file_.bytes(), &data);

  struct Place {
    std::int64_t begin, end;
    TensorSpec spec;
  };
  std::vector<Place> places;
  for (const auto& [name, entry] : header.items()) {
    if (!entry.is_object()) refuse(path, fmt::format("its header's \"{}\" is not an object", name));
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) refuse(path, fmt::format("its metadata's \"{}\" is not a string", key));
      }
      continue;
    }
    const auto [begin, end] = offsets_of(entry);
    TensorSpec spec = parse_spec(path, name, entry);
    if (begin < 0 || end - begin != bytes_of(spec))
      refuse(path, fmt::format("the offsets of tensor \"{}\" do not fit its shape", name));
    places.push_back({begin, end, std::move(spec)});
  }

  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.begin, a.end, a.spec.name) < std::tie(b.begin, b.end, b.spec.name);
  });
  std::int64_t next = 0;
  for (Place& place : places) {
    if (place.begin != next || place.end > static_cast<std::int64_t>(data.size())) {
      refuse(path, fmt::format("tensor \"{}\" is at bytes {} to {} of {}, expected it to begin at {}",
                               place.spec.name, place.begin, place.end, data.size(), next));
    }
    next = place.end;
    data_[place.spec.name] = {tensors_.size(),
                              data.subspan(static_cast<std::size_t>(place.begin),
                                           static_cast<std::size_t>(place.end - place.begin))};
    tensors_.push_back(std::move(place.spec));
  }
  if (next != static_cast<std::int64_t>(data.size()))
    refuse(path, fmt::format("expected {} bytes of data, found {}", next, data.size()));
}

void SafetensorsFile::expect(const std::vector<TensorSpec>& tensors) const {
  std::set<std::string> names;
  for (const TensorSpec& spec : tensors) {
    names.insert(spec.name);
    find(spec.name, spec.dtype, spec.shape);
  }
  for (const TensorSpec& spec : tensors_) {
    check(names.contains(spec.name), "{}: holds a tensor \"{}\" that is not expected: it is of another model",
          path_.string(), spec.name);
  }
}

std::span<const std::byte> SafetensorsFile::find(const std::string& name, DType dtype,
                                                 const Shape& shape) const {
  const auto found = data_.find(name);
  check(found != data_.end(), "{}: expected a tensor \"{}\", found none: it is of another model",
        path_.string(), name);
  const TensorSpec& spec = tensors_[found->second.spec];
  check(spec.dtype == dtype && spec.shape == shape, "{}: tensor \"{}\": expected {} {}, found {} {}",
        path_.string(), name, to_string(dtype), to_string(shape), to_string(spec.dtype),
        to_string(spec.shape));
  check(reinterpret_cast<std::uintptr_t>(found->second.bytes.data()) % size_of(dtype) == 0,
        "{}: tensor \"{}\" is not aligned to its element size: write the file again", path_.string(), name);
  return found->second.bytes;
}

std::int64_t SafetensorsFile::rows(const std::string& name) const {
  const auto found = data_.find(name);
  if (found == data_.end() || tensors_[found->second.spec].shape.empty()) return 0;
  return tensors_[found->second.spec].shape.front();
}

void SafetensorsFile::read(const std::string& name, Tensor& tensor, const Stream& stream) const {
  const auto bytes = find(name, tensor.dtype(), tensor.shape());
  if (bytes.empty()) return;
  copy_bytes(tensor.mutable_raw(), bytes.data(), bytes.size(), stream);
  stream.synchronize();
}

}  // namespace hstu
