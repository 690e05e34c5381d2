#include "hstu/predict/table_output.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/predict/byte_source.h"

namespace hstu {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 16;

std::vector<std::string> converter_words(const Path& file, const std::vector<TableOutput::Column>& columns) {
  std::vector<std::string> words{"from-csv", file.string()};
  for (const TableOutput::Column& column : columns) {
    words.emplace_back(column.type == TableOutput::Type::integer ? "--integers"
                       : column.type == TableOutput::Type::real  ? "--reals"
                                                                 : "--texts");
    words.push_back(column.name);
  }
  return words;
}

}  // namespace

TableOutput::TableOutput(Path path, const std::vector<Column>& columns)
    : path_(std::move(path)), staging_(path_.string() + ".partial") {
  if (std::filesystem::exists(std::filesystem::symlink_status(path_)))
    fail_usage("the output file {} already exists: choose another name or remove it first", path_.string());
  check_writable(path_);
  if (is_parquet(path_)) {
    std::signal(SIGPIPE, SIG_IGN);  // a converter that ends early is an error of the next write
    converter_ = start_converter(converter_words(staging_, columns), Direction::to);
  } else {
    file_.emplace(staging_);
  }
  for (const Column& column : columns) put(column.name);
  end_row();
}

TableOutput::~TableOutput() {
  if (converter_) {
    ::close(converter_->descriptor);
    end_converter(converter_->process);
  }
  file_.reset();
  std::error_code ignored;
  if (!committed_) std::filesystem::remove(staging_, ignored);
}

void TableOutput::begin_field() {
  if (!row_is_empty_) buffer_ += ',';
  row_is_empty_ = false;
}

void TableOutput::put(std::string_view text) {
  begin_field();
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    buffer_ += text;
    return;
  }
  buffer_ += '"';
  for (const char c : text) {
    if (c == '"') buffer_ += '"';
    buffer_ += c;
  }
  buffer_ += '"';
}

void TableOutput::put(std::int64_t number) {
  begin_field();
  fmt::format_to(std::back_inserter(buffer_), "{}", number);
}

void TableOutput::put(float number) {
  begin_field();
  fmt::format_to(std::back_inserter(buffer_), "{}", number);
}

void TableOutput::end_row() {
  buffer_ += '\n';
  row_is_empty_ = true;
  if (buffer_.size() >= kFlushBytes) flush();
}

void TableOutput::flush() {
  if (file_) {
    file_->write(buffer_);
  } else {
    for (std::size_t written = 0; written < buffer_.size();) {
      const ssize_t n = ::write(converter_->descriptor, buffer_.data() + written, buffer_.size() - written);
      if (n < 0 && errno == EINTR) continue;
      check(n >= 0, "cannot write {}: hstu prepare, which writes Parquet, has ended: {}", path_.string(),
            std::strerror(errno));
      written += static_cast<std::size_t>(n);
    }
  }
  buffer_.clear();
}

void TableOutput::commit() {
  flush();
  if (file_) {
    file_->close();
  } else {
    const Converter converter = *std::exchange(converter_, std::nullopt);
    ::close(converter.descriptor);
    check(end_converter(converter.process) == 0, "cannot write {}: see the message of hstu prepare above",
          path_.string());
  }
  std::error_code error;
  std::filesystem::rename(staging_, path_, error);
  check(!error, "cannot rename {} to {}: {}", staging_.string(), path_.string(), error.message());
  committed_ = true;
}

}  // namespace hstu
