#include "hstu/dataset/column_writer.h"

#include <algorithm>
#include <fstream>
#include <type_traits>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"

namespace hstu {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 15;  // elements converted at a time

// Calls body with a value of the type that a column of this width has.
template <typename Body>
auto with_type(IntegerColumn::Width width, const Body& body) {
  switch (width) {
    case IntegerColumn::Width::k1Byte:
      return body(std::uint8_t{});
    case IntegerColumn::Width::k2Bytes:
      return body(std::uint16_t{});
    case IntegerColumn::Width::k4Bytes:
      return body(std::uint32_t{});
    case IntegerColumn::Width::k8Bytes:
      break;
  }
  return body(std::int64_t{});
}

std::string header(IntegerColumn::Width width, std::int64_t count) {
  return with_type(width,
                   [&](auto type) { return npy_header(npy_type<decltype(type)>(), std::span(&count, 1)); });
}

}  // namespace

ColumnWriter::ColumnWriter(Path path, Width narrowest) : path_(std::move(path)), width_(narrowest) {
  open(path_, narrowest);
}

void ColumnWriter::open(const Path& path, Width width) {
  file_ = std::make_unique<OutputFile>(path);
  checksum_ = std::make_unique<Checksum>();
  width_ = width;
  file_->write(header(width, 0));  // The count is set at the end.
}

void ColumnWriter::append(const IntegerColumn& values) {
  values.visit([&](const auto& typed) { append_typed(std::span(typed)); });
}

void ColumnWriter::append(std::span<const std::uint8_t> values) {
  append_typed(values);
}

void ColumnWriter::append(std::span<const std::int64_t> values) {
  append_typed(values);
}

template <typename T>
void ColumnWriter::append_typed(std::span<const T> values) {
  if (values.empty()) return;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  const auto low = static_cast<std::int64_t>(*smallest), high = static_cast<std::int64_t>(*largest);
  if (const Width needed = width_for(low, high); needed > width_) widen(needed);
  min_ = std::min(min_.value_or(low), low);
  max_ = std::max(max_.value_or(high), high);
  with_type(width_, [&](auto type) { write_as<decltype(type)>(values); });
  count_ += static_cast<std::int64_t>(values.size());
}

template <typename To, typename From>
void ColumnWriter::write_as(std::span<const From> values) {
  if constexpr (std::is_same_v<To, From>) {
    write(values.data(), values.size_bytes());
  } else {
    std::vector<To> block;
    for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
      const auto part = values.subspan(begin, std::min(kBlock, values.size() - begin));
      block.resize(part.size());
      std::transform(part.begin(), part.end(), block.begin(), [](From v) { return static_cast<To>(v); });
      write(block.data(), block.size() * sizeof(To));
    }
  }
}

void ColumnWriter::write(const void* elements, std::size_t bytes) {
  file_->write(elements, bytes);
  checksum_->add(elements, bytes);
}

void ColumnWriter::finish_file() {
  const std::string text = header(width_, count_);
  file_->overwrite(0, text.data(), text.size());
  file_->close();
}

// In blocks: a mapped file would count as memory of this process.
void ColumnWriter::copy_elements(const Path& narrow, Width old_width) {
  std::ifstream input(narrow, std::ios::binary);
  input.seekg(static_cast<std::streamoff>(header(old_width, count_).size()));
  with_type(old_width, [&](auto from) {
    std::vector<decltype(from)> block;
    for (std::int64_t done = 0; done < count_; done += static_cast<std::int64_t>(block.size())) {
      block.resize(std::min(kBlock, static_cast<std::size_t>(count_ - done)));
      const auto bytes = static_cast<std::streamsize>(block.size() * sizeof(from));
      input.read(reinterpret_cast<char*>(block.data()), bytes);
      check(input.gcount() == bytes, "cannot read {} again to widen it", narrow.string());
      with_type(width_, [&](auto to) { write_as<decltype(to)>(std::span<const decltype(from)>(block)); });
    }
  });
}

void ColumnWriter::widen(Width width) {
  if (count_ == 0) return open(path_, width);
  const Path narrow = path_.string() + ".narrow";
  const Width old_width = width_;
  finish_file();
  std::filesystem::rename(path_, narrow);
  open(path_, width);
  copy_elements(narrow, old_width);
  std::filesystem::remove(narrow);
}

ColumnInfo ColumnWriter::close() {
  finish_file();
  return {.type = with_type(width_, [](auto type) { return npy_type<decltype(type)>(); }),
          .count = count_,
          .bytes = static_cast<std::int64_t>(file_->size()),
          .checksum = checksum_->text(),
          .min = min_,
          .max = max_};
}

}  // namespace hstu
