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

TablePlace::TablePlace(const Path& path) {
  if (!is_standard_stream(path)) file_.emplace(path, StagedFile::Existing::refuse);
}

bool TablePlace::is_parquet() const {
  return file_ && hstu::is_parquet(file_->path());
}

void TablePlace::commit() {
  if (file_) file_->commit();
}

TableOutput::TableOutput(TablePlace& place, const std::vector<Column>& columns) : place_(place) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader or converter that ends early is an error of the next write
  if (place_.is_parquet()) {
    converter_ = start_converter(converter_words(place_.temporary(), columns), Direction::to);
  } else if (!place_.is_standard_output()) {
    file_.emplace(place_.temporary());
  }
  for (const Column& column : columns) put(column.name);
  end_row();
}

TableOutput::~TableOutput() {
  if (!converter_) return;
  ::close(converter_->descriptor);
  end_converter(converter_->process);
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
    write_to(converter_ ? converter_->descriptor : STDOUT_FILENO);
  }
  buffer_.clear();
}

void TableOutput::write_to(int descriptor) {
  for (std::size_t written = 0; written < buffer_.size();) {
    const ssize_t n = ::write(descriptor, buffer_.data() + written, buffer_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    check(n >= 0, "cannot write {}{}: {}", place_.name(),
          converter_ ? ": hstu prepare, which writes Parquet, has ended" : "", std::strerror(errno));
    written += static_cast<std::size_t>(n);
  }
}

void TableOutput::commit() {
  flush();
  if (file_) file_->close();
  if (converter_) {
    const Converter converter = *std::exchange(converter_, std::nullopt);
    ::close(converter.descriptor);
    check(end_converter(converter.process) == 0, "cannot write {}: see the message of hstu prepare above",
          place_.name());
  }
  place_.commit();
}

}  // namespace hstu
