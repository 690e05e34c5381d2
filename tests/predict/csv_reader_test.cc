#include "hstu/predict/csv_reader.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Rows = std::vector<std::vector<std::string>>;

class Csv : public ::testing::Test {
 protected:
  CsvReader open(const std::string& text) {
    const Path file = temporary_folder() / "t.csv";
    write_file(file, text);
    return CsvReader{ByteSource(file)};
  }
  Rows rows(const std::string& text) {
    CsvReader reader = open(text);
    Rows all;
    while (reader.next()) {
      all.emplace_back();
      for (std::size_t c = 0; c < reader.columns().size(); ++c) all.back().emplace_back(reader.field(c));
    }
    return all;
  }
  std::string complaint(const std::string& text) {
    try {
      rows(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Csv, FieldsMayBeQuotedAndLinesEndEitherWay) {
  const Rows expected{{"1", "x"}, {"2", ""}};
  EXPECT_EQ(rows("a,b\n1,x\n2,\n"), expected);
  EXPECT_EQ(rows("a,b\r\n1,x\r\n2,"), expected);
  EXPECT_EQ(rows("\xef\xbb\xbf\"a\",b\n1,\"x\"\n\"2\",\"\"\n"), expected);
  EXPECT_EQ(rows("a,b\n\"1,\"\"2\"\"\",\"line\r\nend\"\n3,4\n"),
            (Rows{{"1,\"2\"", "line\r\nend"}, {"3", "4"}}));
  EXPECT_EQ(rows("a\n"), Rows());
}

TEST_F(Csv, RowsOfAnyLengthAreReadInBlocks) {
  std::string text = "a,b\n";
  Rows expected;
  for (int i = 0; i < 200; ++i) {
    expected.push_back({std::to_string(i), std::string(static_cast<std::size_t>(1 + 97 * i), 'x')});
    const std::string quote = i % 3 == 0 ? "\"" : "";
    text += fmt::format("{},{}{}{}\n", expected.back()[0], quote, expected.back()[1], quote);
  }
  text += fmt::format("9,\"{}\n{}\"\n", std::string(400'000, 'y'), std::string(300'000, 'z'));
  expected.push_back({"9", std::string(400'000, 'y') + "\n" + std::string(300'000, 'z')});
  EXPECT_EQ(rows(text), expected);
}

// Any fields, in quotes where they must be and here and there besides.
TEST_F(Csv, ReadsWhatWasWritten) {
  RandomStream random{.key = 3};
  const auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(random.below(n)); };
  for (int file = 0; file < 40; ++file) {
    const std::size_t columns = 1 + below(4);
    Rows expected(below(30));
    std::string text;
    for (std::size_t c = 0; c < columns; ++c) text += fmt::format("{}column {}", c == 0 ? "" : ",", c);
    for (auto& row : expected) {
      text += below(2) == 0 ? "\n" : "\r\n";
      for (std::size_t c = 0; c < columns; ++c) {
        std::string& field = row.emplace_back();
        for (std::size_t n = below(12); n > 0; --n) field += "ab,\"\n\r 1"[below(8)];
        const bool plain = field.find_first_of(",\"\r\n") == std::string::npos && below(3) > 0;
        text += c == 0 ? "" : ",";
        if (plain) {
          text += field;
          continue;
        }
        text += '"';
        for (const char letter : field) text += letter == '"' ? std::string("\"\"") : std::string(1, letter);
        text += '"';
      }
    }
    // A last line that is empty is no row of one empty field.
    if (expected.empty() || columns > 1 || !expected.back()[0].empty() || text.ends_with('"')) {
      ASSERT_EQ(rows(text), expected) << text;
    }
    ASSERT_EQ(rows(text + "\n"), expected) << text;
  }
}

TEST_F(Csv, MistakesAreNamedWithFileAndLine) {
  EXPECT_THAT(complaint(""), HasSubstr("t.csv: expected a header line"));
  EXPECT_THAT(complaint("a,\n"), HasSubstr("t.csv line 1: a column has no name"));
  EXPECT_THAT(complaint("a,a\n"), HasSubstr("t.csv line 1: two columns are named \"a\""));
  EXPECT_THAT(complaint("a,b\n1,2\n1\n"),
              HasSubstr("t.csv line 3: expected 2 fields, one for each column, found 1"));
  EXPECT_THAT(complaint("a,b\n1,2\n\n"), HasSubstr("line 3: expected 2 fields"));
  EXPECT_THAT(complaint("a,b\n1,\"2\n\n"), HasSubstr("line 2: a quote is never closed"));
  EXPECT_THAT(complaint("a,b\n1,2\"3\"\n"), HasSubstr("line 2: a quote is inside a field"));
  EXPECT_THAT(complaint("a,b\n1,\"2\"3\n"), HasSubstr("line 2: a quoted field continues"));
  EXPECT_THAT(complaint("a,b\n\"1\n\n\",2\n3\n"), HasSubstr("line 5: expected 2 fields"));
  EXPECT_THAT(complaint("a\n" + std::string((std::size_t{65} << 20), '1')),
              HasSubstr("longer than 64.0 MiB"));
}

TEST_F(Csv, NumbersAreWholeAndOf64Bits) {
  CsvReader reader = open("id\n-9223372036854775808\n1.5\n9223372036854775808\n");
  reader.next();
  EXPECT_EQ(reader.integer(0), std::numeric_limits<std::int64_t>::min());
  for (int i = 0; i < 2; ++i) {
    reader.next();
    EXPECT_THROW(reader.integer(0), Error);
  }
}

}  // namespace
}  // namespace hstu
