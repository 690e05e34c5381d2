#include "hstu/columns/movielens_source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::size_t kShownOfLine = 80;  // of a malformed line, in messages

// The format of one of MovieLens' files.
struct Format {
  const char* file;
  std::string_view separator;
  bool has_header;
  bool is_ratings;  // else: movies
};

constexpr std::array kFormats = {
    Format{"u.data", "\t", false, true},      Format{"ratings.dat", "::", false, true},
    Format{"ratings.csv", ",", true, true},   Format{"u.item", "|", false, false},
    Format{"movies.dat", "::", false, false}, Format{"movies.csv", ",", true, false},
};

const Format* find_format(const Path& file) {
  const std::string name = file.filename().string();
  const auto* const found = std::find_if(kFormats.begin(), kFormats.end(),
                                         [&](const Format& format) { return name == format.file; });
  return found == kFormats.end() ? nullptr : found;
}

// Removes the text up to and including the next separator from the front of `rest`; returns the text before
// it.
std::string_view take_field(std::string_view& rest, std::string_view separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view field = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + separator.size());
  return field;
}

// The places of user, item, rating and time among the fields of a line.
using Places = std::array<std::size_t, 4>;
constexpr Places kUsualPlaces{0, 1, 2, 3};
constexpr std::size_t kMostFields = 16;

// The fields of a line, at most kMostFields; further ones are counted alone.
struct Fields {
  std::array<std::string_view, kMostFields> texts;
  std::size_t count = 0;
};
Fields fields_of(std::string_view line, std::string_view separator) {
  Fields fields;
  for (bool more = true; more; ++fields.count) {
    more = line.find(separator) != std::string_view::npos;
    const std::string_view field = take_field(line, separator);
    if (fields.count < kMostFields) fields.texts[fields.count] = field;
  }
  return fields;
}

// "userId", "user_id" and "\"USERID\"": userid.
std::string plain_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

// Where the header of ratings.csv has the four columns; nothing if it lacks one.
std::optional<Places> places_in(std::string_view header, std::string_view separator) {
  constexpr std::array<std::array<std::string_view, 3>, 4> kNames{{{"userid", "user", "uid"},
                                                                   {"movieid", "itemid", "item"},
                                                                   {"rating", "rating", "score"},
                                                                   {"timestamp", "time", "timestamp"}}};
  const Fields fields = fields_of(header, separator);
  Places places{};
  for (std::size_t column = 0; column < kNames.size(); ++column) {
    std::size_t at = 0;
    const auto& names = kNames[column];
    while (at < std::min(fields.count, kMostFields) && !contains(names, plain_name(fields.texts[at]))) ++at;
    if (at == std::min(fields.count, kMostFields)) return std::nullopt;
    places[column] = at;
  }
  return places;
}

// False if `text` is not a number.
template <typename Number>
bool read_number(std::string_view text, Number& value) {
  const std::optional<Number> number = parse_number<Number>(text);
  if (number) value = *number;
  return number.has_value();
}

// The year in "Title (1995)", "American President, The (1995)": the last four digits in brackets; 0 if there
// are none.
std::int64_t year_of(std::string_view title) {
  for (std::size_t open = title.rfind('('); open != std::string_view::npos;
       open = title.rfind('(', open - 1)) {
    const std::string_view digits = title.substr(open + 1, 4);
    std::int64_t year = 0;
    if (title.substr(open + 1).find(')') == 4 && read_number(digits, year) && year > 0) return year;
    if (open == 0) break;
  }
  return 0;
}

class MovieLensSource : public ColumnSource {
 public:
  MovieLensSource(Path path, const Format& format, std::span<const std::string> columns,
                  std::int64_t batch_rows)
      : path_(std::move(path)), format_(format), batch_rows_(batch_rows) {
    using Kind = RawColumn::Kind;
    const auto column = [](const char* name, const char* type, Kind kind) {
      RawColumn result;
      result.name = name;
      result.type_name = type;
      result.kind = kind;
      return result;
    };
    if (format_.is_ratings) {
      empty_ = {column("user", "integer", Kind::kInteger), column("item", "integer", Kind::kInteger),
                column("rating", "real", Kind::kReal), column("timestamp", "integer", Kind::kInteger)};
    } else {
      empty_ = {column("item", "integer", Kind::kInteger), column("year", "integer", Kind::kInteger)};
    }
    std::vector<std::string> names;
    for (const RawColumn& known : empty_) names.push_back(known.name);
    order_ = find_columns(path_, columns, names);
    check_input_file(path_);
    input_.open(path_);
    if (!input_) fail("cannot open {}: check the permissions", path_.string());
    if (format_.has_header) read_header();
  }

  std::vector<std::int64_t> groups() const override { return {0}; }
  std::optional<RawColumn> range(std::size_t, std::size_t) const override { return std::nullopt; }
  bool is_text(std::size_t) const override { return false; }
  void select(std::size_t) override {
    require(rows_done_ == 0, "{}: its only group has already been read", path_.string());
  }

  bool next(RawBatch& batch) override {
    std::vector<RawColumn> columns = empty_;
    batch.file = path_.string();
    batch.first_row = rows_done_;
    batch.line_of = [header = header_](std::int64_t row) { return row + (header ? 2 : 1); };
    batch.rows = 0;
    for (std::string line; batch.rows < batch_rows_ && read_line(line); ++batch.rows) {
      ++line_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      const bool good = format_.is_ratings ? parse_rating(line, columns) : parse_movie(line, columns);
      if (!good) fail_malformed(line);
    }
    if (input_.bad()) fail("cannot read {}", path_.string());
    rows_done_ += batch.rows;
    batch.columns.clear();
    for (const std::size_t position : order_) batch.columns.push_back(columns[position]);
    return batch.rows > 0;
  }

 private:
  // The first line, unless it is a row already: some files have lost their header.
  void read_header() {
    std::string header;
    if (!read_line(header)) return;
    if (!header.empty() && header.back() == '\r') header.pop_back();
    std::string_view first = header;
    std::int64_t number = 0;
    if (read_number(take_field(first, format_.separator), number)) {
      input_.seekg(0);
      return;
    }
    line_ = 1;
    header_ = true;
    if (format_.is_ratings) {
      const auto places = places_in(header, format_.separator);
      if (!places)
        fail(
            "{}: line 1: expected a header with userId, movieId, rating and timestamp, or numbers, found "
            "\"{}\": for "
            "other columns write a schema (hstu prepare csv)",
            path_.string(), header.substr(0, kShownOfLine));
      places_ = *places;
      fields_ = fields_of(header, format_.separator).count;
    } else if (std::string_view rest = header; plain_name(take_field(rest, format_.separator)) != "movieid") {
      fail("{}: line 1: expected a header that begins with movieId, or numbers, found \"{}\"", path_.string(),
           header.substr(0, kShownOfLine));
    }
  }

  // False at the end of the file.
  bool read_line(std::string& line) {
    const bool read =
        !input_.getline(line_bytes_.data(), static_cast<std::streamsize>(line_bytes_.size())).fail();
    if (!read && input_.gcount() > 0 && !input_.eof()) {
      fail("{}: line {}: it is longer than {} bytes: not a file of MovieLens", path_.string(), line_ + 1,
           line_bytes_.size());
    }
    if (read) line = line_bytes_.data();
    return read;
  }

  bool parse_rating(std::string_view line, std::vector<RawColumn>& columns) const {
    std::int64_t user = 0, item = 0, time = 0;
    double rating = 0;
    const Fields fields = fields_of(line, format_.separator);
    const bool good = fields.count == fields_ && read_number(fields.texts[places_[0]], user) &&
                      read_number(fields.texts[places_[1]], item) &&
                      read_number(fields.texts[places_[2]], rating) &&
                      read_number(fields.texts[places_[3]], time);
    columns[0].integers.push_back(user);
    columns[1].integers.push_back(item);
    columns[2].reals.push_back(rating);
    columns[3].integers.push_back(time);
    return good;
  }

  bool parse_movie(std::string_view line, std::vector<RawColumn>& columns) const {
    std::int64_t item = 0;
    const bool good = read_number(take_field(line, format_.separator), item) && !line.empty();
    // In movies.csv a title may contain commas; the genres after it contain no year, so the rest of the line
    // is used.
    const std::int64_t year = year_of(format_.has_header ? line : take_field(line, format_.separator));
    columns[0].integers.push_back(item);
    columns[1].integers.push_back(year);
    columns[1].nulls.push_back(year == 0 ? 1 : 0);
    return good;
  }

  [[noreturn]] void fail_malformed(const std::string& line) const {
    fail("{}: line {}: expected {} separated by \"{}\", found \"{}\"", path_.string(), line_,
         format_.is_ratings ? "user, item, rating and time" : "item, title and more",
         format_.separator == "\t" ? "\\t" : format_.separator, line.substr(0, kShownOfLine));
  }

  Path path_;
  Format format_;
  std::int64_t batch_rows_;
  std::ifstream input_;
  std::vector<char> line_bytes_ = std::vector<char>(std::size_t{1} << 16);
  std::vector<RawColumn> empty_;    // every column of the file, without rows
  std::vector<std::size_t> order_;  // positions of the requested columns in `empty_`
  Places places_ = kUsualPlaces;
  std::size_t fields_ = kUsualPlaces.size();
  bool header_ = false;  // the first line is one
  std::int64_t line_ = 0, rows_done_ = 0;
};

}  // namespace

bool is_movielens_file(const Path& file) {
  return find_format(file) != nullptr;
}

bool is_movielens_ratings(const Path& file) {
  const Format* const format = find_format(file);
  return format != nullptr && format->is_ratings;
}

std::unique_ptr<ColumnSource> open_movielens(const Path& file, std::span<const std::string> columns,
                                             const ReadOptions& options) {
  const Format* const format = find_format(file);
  require(format != nullptr, "{} is not a MovieLens file", file.string());
  return std::make_unique<MovieLensSource>(file, *format, columns, options.batch_rows);
}

}  // namespace hstu
