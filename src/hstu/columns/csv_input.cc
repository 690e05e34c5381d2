#include "hstu/columns/csv_input.h"

#include <algorithm>
#include <utility>

#include <arrow/api.h>
#include <arrow/io/compressed.h>
#include <arrow/io/file.h>
#include <arrow/util/compression.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/file_format.h"

namespace hstu {
namespace {

constexpr std::int64_t kReadBytes = std::int64_t{1} << 20;
constexpr std::int64_t kFirstBytes = 512;  // more than known_first_bytes() needs

constexpr const char* kAdvice =
    "if the quotes belong to the texts, set quote = \"\" in the schema; inside a quoted field a quote is "
    "written "
    "twice";

struct Compression {
  FileFormat format;
  arrow::Compression::type type;
  const char* text;
};
constexpr Compression kCompressions[] = {
    {FileFormat::kGzip, arrow::Compression::GZIP, "CSV compressed by gzip"},
    {FileFormat::kZstd, arrow::Compression::ZSTD, "CSV compressed by zstd"},
    {FileFormat::kBzip2, arrow::Compression::BZ2, "CSV compressed by bzip2"},
};

// nullptr: the file is not compressed.
const Compression* compression_of(const Path& file) {
  const FileFormat format = format_of(file);
  const auto* const found = std::find_if(std::begin(kCompressions), std::end(kCompressions),
                                         [&](const Compression& known) { return known.format == format; });
  return found == std::end(kCompressions) ? nullptr : found;
}

template <typename T>
T bytes_or_fail(arrow::Result<T> result, const Path& file) {
  check(result.ok(), "{}: cannot be read as {} (it is truncated, damaged or of another format): {}",
        file.string(), kind_of_csv(file), result.status().message());
  return std::move(result).ValueUnsafe();
}

std::shared_ptr<arrow::io::InputStream> open_bytes(const Path& file) {
  return bytes_or_fail(arrow::io::ReadableFile::Open(file.string(), arrow::system_memory_pool()), file);
}

// Calls body(block) for the blocks of the file until it returns true or the file ends.
template <typename Body>
void for_blocks(const Path& file, const Body& body) {
  const auto input = open_csv_bytes(file);
  for (;;) {
    const std::shared_ptr<arrow::Buffer> block = bytes_or_fail(input->Read(kReadBytes), file);
    if (block->size() == 0 || body(std::string_view(*block))) return;
  }
}

// The line of a byte, from 1.
std::int64_t line_at(const Path& file, std::int64_t offset) {
  std::int64_t line = 1, begin = 0;
  for_blocks(file, [&](std::string_view block) {
    const auto part = block.substr(0, static_cast<std::size_t>(offset - begin));
    line += std::count(part.begin(), part.end(), '\n');
    begin += std::ssize(block);
    return begin >= offset;
  });
  return line;
}

// Some characters from a byte on, up to the end of its line.
std::string text_at(const Path& file, std::int64_t offset) {
  constexpr std::size_t kShownBytes = 40;
  std::string text;
  std::int64_t begin = 0;
  for_blocks(file, [&](std::string_view block) {
    if (begin + std::ssize(block) > offset) {
      const auto from = static_cast<std::size_t>(std::max<std::int64_t>(0, offset - begin));
      text += block.substr(from, kShownBytes - text.size());
    }
    begin += std::ssize(block);
    return text.size() >= kShownBytes;
  });
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace

char delimiter_of(const Path& file, const CsvFormat& format) {
  if (format.delimiter != '\0') return format.delimiter;
  return ending_of(file) == ".tsv" ? '\t' : ',';
}

const char* kind_of_csv(const Path& file) {
  const Compression* const compression = compression_of(file);
  return compression != nullptr ? compression->text : "CSV";
}

std::shared_ptr<arrow::io::InputStream> open_csv_bytes(const Path& file) {
  check_input_file(file);
  const Compression* const compression = compression_of(file);
  if (compression == nullptr) return open_bytes(file);
  const auto codec = bytes_or_fail(arrow::util::Codec::Create(compression->type), file);
  const auto unpacked = [&] {
    return bytes_or_fail(
        arrow::io::CompressedInputStream::Make(codec.get(), open_bytes(file), arrow::system_memory_pool()),
        file);
  };
  check_unpacked(file, std::string_view(*bytes_or_fail(unpacked()->Read(kFirstBytes), file)));
  return unpacked();
}

std::int64_t line_of_record(const Path& file, const CsvFormat& format, std::int64_t record) {
  CsvScanner scanner(format, delimiter_of(file, format), 0);
  for_blocks(file, [&](std::string_view block) { return scanner.scan_to(record, block); });
  return scanner.line();
}

CheckedQuotes::CheckedQuotes(Path file, const CsvFormat& format, std::int64_t fields)
    : file_(std::move(file)),
      input_(open_csv_bytes(file_)),
      scanner_(format, delimiter_of(file_, format), fields) {}

arrow::Status CheckedQuotes::check(std::string_view bytes) {
  if (!scanner_.scan(bytes)) {
    fault_ = Fault::behind;
  } else if (bytes.empty() && scanner_.is_open()) {
    fault_ = Fault::open;
  }
  return fault_ == Fault::none ? arrow::Status::OK() : arrow::Status::Invalid("quotes");
}

arrow::Result<std::int64_t> CheckedQuotes::Read(std::int64_t bytes, void* to) {
  ARROW_ASSIGN_OR_RAISE(const std::int64_t found, input_->Read(bytes, to));
  ARROW_RETURN_NOT_OK(check({static_cast<const char*>(to), static_cast<std::size_t>(found)}));
  return found;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> CheckedQuotes::Read(std::int64_t bytes) {
  if (next_ == nullptr) {
    ARROW_ASSIGN_OR_RAISE(next_, input_->Read(bytes));
  }
  std::shared_ptr<arrow::Buffer> found = next_;
  ARROW_RETURN_NOT_OK(check(std::string_view(*found)));
  if (found->size() == 0) return found;
  ARROW_ASSIGN_OR_RAISE(next_, input_->Read(bytes));
  // To Arrow a header without a line end is no line.
  if (next_->size() == 0 && !std::string_view(*found).ends_with('\n'))
    return arrow::Buffer::FromString(found->ToString() + '\n');
  return found;
}

std::optional<std::string> CheckedQuotes::fault() const {
  if (fault_ == Fault::none) return std::nullopt;
  const std::int64_t began = line_at(file_, scanner_.opened());
  if (fault_ == Fault::open) {
    return fmt::format("{}: line {}: a field begins with a quote that is never closed: {}: {}",
                       file_.string(), began, text_at(file_, scanner_.opened()), kAdvice);
  }
  const std::int64_t line = line_at(file_, scanner_.offset());
  return fmt::format("{}: line {}: text follows the closing quote of a field{}: {}: {}", file_.string(), line,
                     began == line ? "" : fmt::format(" that began on line {}", began),
                     text_at(file_, scanner_.offset() - 1), kAdvice);
}

std::string CheckedQuotes::remark() const {
  const auto joined = scanner_.joined();
  if (!joined) return "";
  return fmt::format(
      "{}: line {}: this quoted field contains line ends and as many delimiters as a whole row{}: if stray "
      "quotes have joined rows, set quote = \"\" in the schema",
      file_.string(), line_at(file_, joined->first),
      joined->fields > 1 ? fmt::format(", as do {} more", with_separators(joined->fields - 1)) : "");
}

}  // namespace hstu
