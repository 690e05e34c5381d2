#include "hstu/columns/folder_columns.h"

#include <charconv>
#include <utility>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::string_view kNull = "__HIVE_DEFAULT_PARTITION__";

// "a%3Ab": a:b.
std::string decoded(std::string_view text) {
  constexpr int kHexadecimal = 16;
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const bool escape = text[i] == '%' && i + 2 < text.size();
    if (escape && std::from_chars(&text[i + 1], &text[i] + 3, byte, kHexadecimal).ptr == &text[i] + 3) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

template <typename Number>
Number number_of(const Path& file, const std::string& name, const std::string& text) {
  const auto number = parse_number<Number>(text);
  check(number.has_value(), "{}: the folder {}={}: expected a number, because the schema uses \"{}\" as one",
        file.string(), name, text, name);
  return *number;
}

// A row of the column, which all rows of the file are equal to.
RawColumn one_row(const Path& file, const std::string& name, const std::optional<std::string>& value,
                  const ReadOptions& options) {
  RawColumn column;
  column.name = name;
  column.type_name = "name of a folder";
  if (!value || contains(options.nulls, *value)) {
    column.untyped = true;
    column.integers = {0};
    column.nulls = {1};
  } else if (options.csv && contains(options.csv->integers, name)) {
    column.integers = {number_of<std::int64_t>(file, name, *value)};
  } else if (options.csv && contains(options.csv->numbers, name)) {
    column.kind = RawColumn::Kind::kReal;
    column.reals = {number_of<double>(file, name, *value)};
  } else {
    column.kind = RawColumn::Kind::kText;
    column.texts = {*value};
    column.integers = {0};
  }
  return column;
}

template <typename T>
void repeat(std::vector<T>& values, std::int64_t rows) {
  if (!values.empty()) values.assign(static_cast<std::size_t>(rows), values.front());
}

class FolderSource : public ColumnSource {
 public:
  FolderSource(const Path& file, std::span<const std::string> columns, const ReadOptions& options,
               const std::map<std::string, std::optional<std::string>>& values,
               std::unique_ptr<ColumnSource> rows)
      : rows_(std::move(rows)) {
    std::size_t next = 0;
    for (const std::string& name : columns) {
      const auto found = values.find(name);
      if (found == values.end())
        places_.push_back({.inner = next++});
      else
        places_.push_back({.folder = one_row(file, name, found->second, options)});
    }
  }

  std::vector<std::int64_t> groups() const override { return rows_->groups(); }
  std::optional<RawColumn> range(std::size_t column, std::size_t group) const override {
    return places_[column].folder ? std::nullopt : rows_->range(places_[column].inner, group);
  }
  bool is_text(std::size_t column) const override {
    const auto& folder = places_[column].folder;
    return folder ? folder->kind == RawColumn::Kind::kText : rows_->is_text(places_[column].inner);
  }
  bool is_untyped(std::size_t column) const override {
    const auto& folder = places_[column].folder;
    return folder ? folder->untyped : rows_->is_untyped(places_[column].inner);
  }
  void select(std::size_t group) override { rows_->select(group); }
  std::string remark() const override { return rows_->remark(); }

  bool next(RawBatch& batch) override {
    if (!rows_->next(batch)) return false;
    std::vector<RawColumn> read = std::move(batch.columns);
    batch.columns.clear();
    for (const Place& place : places_) {
      if (!place.folder) {
        batch.columns.push_back(std::move(read[place.inner]));
        continue;
      }
      RawColumn column = *place.folder;
      repeat(column.integers, batch.rows);
      repeat(column.reals, batch.rows);
      repeat(column.nulls, batch.rows);
      batch.columns.push_back(std::move(column));
    }
    return true;
  }

 private:
  struct Place {
    std::size_t inner = 0;                 // column of rows_
    std::optional<RawColumn> folder = {};  // one row; absent: the file has the column
  };

  std::unique_ptr<ColumnSource> rows_;
  std::vector<Place> places_;
};

}  // namespace

std::map<std::string, std::optional<std::string>> folder_values(const Path& file) {
  std::map<std::string, std::optional<std::string>> values;
  for (const Path& part : file.parent_path()) {
    const std::string name = part.string();
    const std::size_t at = name.find('=');
    if (at == std::string::npos || at == 0) continue;
    const std::string value = name.substr(at + 1);
    values[decoded(name.substr(0, at))] = value == kNull ? std::nullopt : std::optional(decoded(value));
  }
  return values;
}

std::unique_ptr<ColumnSource> with_folder_columns(
    const Path& file, std::span<const std::string> columns, const ReadOptions& options,
    const std::map<std::string, std::optional<std::string>>& values, std::unique_ptr<ColumnSource> rows) {
  return std::make_unique<FolderSource>(file, columns, options, values, std::move(rows));
}

}  // namespace hstu
