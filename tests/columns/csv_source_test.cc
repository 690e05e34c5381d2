#include "hstu/columns/csv_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = RawColumn::Kind;

const CsvFormat kNumbers{.integers = {"n"}, .numbers = {"x"}};

// The texts of a column of texts; "<null>" for null.
std::vector<std::string> texts_of(const RawColumn& column) {
  std::vector<std::string> texts;
  for (const std::int64_t code : column.integers)
    texts.push_back(code < 0 ? "<null>" : column.texts.at(static_cast<std::size_t>(code)));
  return texts;
}

RawBatch read_csv(const std::string& text, const std::vector<std::string>& columns,
                  const CsvFormat& format = {}, const std::string& name = "log.csv") {
  const Path file = temporary_folder() / name;
  write_file(file, text);
  const auto source = open_csv(file, columns, format);
  RawBatch batch, more;
  EXPECT_TRUE(source->next(batch));
  EXPECT_FALSE(source->next(more));
  return batch;
}

std::string csv_error(const std::string& text, const CsvFormat& format = {},
                      const std::string& name = "log.csv") {
  try {
    read_csv(text, {"a", "n"}, format, name);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CsvSource, NeverGuessesTypes) {
  const RawBatch batch = read_csv("a,n,x\n007,7,1\n12345678901234567890,-9007199254740993,2.5\n1e3,0,\n",
                                  {"x", "a", "n"}, kNumbers);
  EXPECT_EQ(batch.rows, 3);
  EXPECT_THAT(texts_of(batch.columns[1]), ElementsAre("007", "12345678901234567890", "1e3"));
  EXPECT_EQ(batch.columns[2].kind, Kind::kInteger);
  EXPECT_THAT(batch.columns[2].integers, ElementsAre(7, -9'007'199'254'740'993, 0));
  EXPECT_EQ(batch.columns[0].kind, Kind::kReal);
  EXPECT_THAT(batch.columns[0].reals, ElementsAre(1, 2.5, 0));
  EXPECT_THAT(batch.columns[0].nulls, ElementsAre(0, 0, 1));
}

// 2^53 + 1 is no double, and a condition would take it for 2^53.
TEST(CsvSource, RefusesIntegersThatADoubleRounds) {
  EXPECT_THAT(
      read_csv("x\n9007199254740992\n-4611686018427387904\n1e300\n", {"x"}, kNumbers).columns[0].reals,
      ElementsAre(9007199254740992.0, -4611686018427387904.0, 1e300));
  for (const char* text : {"9007199254740993", "-1234567890123456789", "9223372036854775807"}) {
    const std::string error = csv_error(fmt::format("a,n\n1,1\n1,{}\n", text), {.numbers = {"n"}});
    EXPECT_THAT(error, HasSubstr(fmt::format("column \"n\": line 3: a double would round {}", text)));
    EXPECT_THAT(error, HasSubstr("set integers = [\"n\"]"));
  }
}

TEST(CsvSource, ReadsQuotesLineBreaksAndNulls) {
  const RawBatch batch = read_csv("a,n\r\n\"x, \"\"y\"\"\r\nz\",1\r\n,2\r\n\"\",3\r\n", {"a"});
  EXPECT_THAT(texts_of(batch.columns[0]), ElementsAre("x, \"y\"\r\nz", "<null>", ""));
}

TEST(CsvSource, TakesDelimitersFromNamesAndFormats) {
  EXPECT_THAT(texts_of(read_csv("a\tn\nx,y\t1\n", {"a"}, {}, "log.tsv").columns[0]), ElementsAre("x,y"));
  EXPECT_THAT(texts_of(read_csv("a;n\nx,y;1\n", {"a"}, {.delimiter = ';'}).columns[0]), ElementsAre("x,y"));
}

TEST(CsvSource, ReadsFilesWithoutHeader) {
  const CsvFormat format{.columns = {"a", "n"}, .integers = {"n"}};
  EXPECT_THAT(read_csv("x,1\ny,2\n", {"n"}, format).columns[0].integers, ElementsAre(1, 2));
  EXPECT_THAT(csv_error("a,n\nx,1\n", format), HasSubstr("remove columns from the schema"));
  EXPECT_THAT(csv_error("x,1\n", {.columns = {"b", "n"}}),
              HasSubstr("columns does not name the column \"a\""));
}

TEST(CsvSource, NamesTheLineOfARowWithAnotherNumberOfFields) {
  EXPECT_THAT(csv_error("a,n\nx,1\ny\n"), AllOf(HasSubstr("log.csv: line 3: expected 2 fields, found 1: y")));
  EXPECT_THAT(csv_error("a,n\n\n\"x\n\ny\",1\n\nz,1,2\n"), HasSubstr("line 7: expected 2 fields, found 3"));
}

// The second quote closes what the first one has opened, so that Arrow reads four rows as two.
TEST(CsvSource, RefusesTextBehindAClosingQuote) {
  EXPECT_THAT(
      csv_error("a,n\n\"5 disk,1\nx,2\n\"5 disk,3\ny,4\n"),
      AllOf(HasSubstr("log.csv: line 4: text follows the closing quote of a field that began on line 2"),
            HasSubstr("\"5 disk,3"), HasSubstr("quote = \"\"")));
  EXPECT_THAT(csv_error("a\tn\n\"Live\t1\nx\t2\n\"Live\t3\n", {}, "log.tsv"), HasSubstr("log.tsv: line 4"));
  EXPECT_THAT(csv_error("a,n\nx,1\n\"a\"z,2\n"),
              HasSubstr("line 3: text follows the closing quote of a field: \"z,2"));
  EXPECT_THAT(csv_error("a,n\n\"a\"\"b\" ,2\n"), HasSubstr("line 2: text follows"));
  EXPECT_THAT(csv_error("a,\"n\"n\nx,1\n"), HasSubstr("line 1: text follows"));
}

TEST(CsvSource, RefusesAQuoteThatIsNeverClosed) {
  EXPECT_THAT(csv_error("a,n\nx,1\n\"y,2\nz,3\n"),
              HasSubstr("line 3: a field begins with a quote that is never closed: \"y,2"));
  EXPECT_THAT(csv_error("a,n\nx,1\n\"y,2\n" + std::string(3 << 20, 'x') + ",1\n"), HasSubstr("line 3: a "));
}

TEST(CsvSource, ReadsWhatQuotesMayDo) {
  const RawBatch batch =
      read_csv("\xEF\xBB\xBF\"a\",n\n\"\"\"x\"\"\",1\ny\"z\",2\n 5\"\"6,3\n\"\"\"\",4\n\"e\",\"5\"", {"a"});
  EXPECT_THAT(texts_of(batch.columns[0]), ElementsAre("\"x\"", "y\"z\"", " 5\"\"6", "\"", "e"));
}

// Blocks end inside of quotes, between two quotes and behind them.
TEST(CsvSource, FollowsQuotesAcrossBlocks) {
  std::string text = "a,n\n";
  for (int row = 0; row < 300'000; ++row) text += row % 3 == 0 ? "\"x\"\"\ny\",1\n" : "z,\"\"\n";
  const Path file = temporary_folder() / "log.csv";
  write_file(file, text);
  const auto rows_of = [&] {
    const auto source = open_csv(file, std::vector<std::string>{"a"}, {});
    std::int64_t rows = 0;
    for (RawBatch batch; source->next(batch);) rows += batch.rows;
    return rows;
  };
  EXPECT_EQ(rows_of(), 300'000);
  write_file(file, text + "\"x\"y,1\n");
  try {
    rows_of();
    FAIL() << "text behind a closing quote was read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("line 400002: text follows"));
  }
}

TEST(CsvSource, RemarksThatStrayQuotesMayHaveJoinedRows) {
  const Path file = temporary_folder() / "log.csv";
  const auto remark_of = [&](const std::string& text) {
    write_file(file, text);
    const auto source = open_csv(file, std::vector<std::string>{"a"}, {});
    for (RawBatch batch; source->next(batch);) continue;
    return source->remark();
  };
  EXPECT_THAT(
      remark_of("a,n\n\"5 disk,1\nx,2\ndisk 5\",3\n"),
      AllOf(HasSubstr("log.csv: line 2: this quoted field contains line ends"), HasSubstr("quote = \"\"")));
  EXPECT_EQ(remark_of("a,n\n\"two\nlines\",1\n\"x, y\",2\n"), "");
}

TEST(CsvSource, ReadsWithoutQuotes) {
  const RawBatch batch = read_csv("a,n\n\"5 disk,1\n\"x\",2\n\"\",3\n,4\n", {"a"}, {.quote = {}});
  EXPECT_THAT(texts_of(batch.columns[0]), ElementsAre("\"5 disk", "\"x\"", "\"\"", "<null>"));
}

TEST(CsvSource, TakesQuoteAndEscapeFromTheFormat) {
  EXPECT_THAT(texts_of(read_csv("a,n\n'x, ''y''',1\n\"z,2\n", {"a"}, {.quote = '\''}).columns[0]),
              ElementsAre("x, 'y'", "\"z"));
  EXPECT_THAT(
      texts_of(read_csv("a,n\n\"x \\\"y\\\" \\\\\",1\nu\\,v,2\n", {"a"}, {.escape = '\\'}).columns[0]),
      ElementsAre("x \"y\" \\", "u,v"));
  EXPECT_THAT(csv_error("a,n\n\"x\\\"y\"z,1\n", {.escape = '\\'}), HasSubstr("line 2: text follows"));
  EXPECT_THAT(csv_error("a,n\n'x'y,1\n", {.quote = '\''}), HasSubstr("line 2: text follows"));
}

TEST(CsvSource, NamesTheLineOfTextThatIsNotUtf8) {
  EXPECT_THAT(csv_error("a,n\n\"b\nc\",1\nMalm\xF6,2\n"),
              HasSubstr("log.csv: line 4: expected text in UTF-8: write the file again in UTF-8"));
}

TEST(CsvSource, NamesWhatIsWrong) {
  EXPECT_THAT(csv_error("x,1\n"), AllOf(HasSubstr("names no column \"a\""), HasSubstr("columns = [")));
  EXPECT_THAT(csv_error("a,a,n\nx,y,1\n"), HasSubstr("more than one column of this name"));
  EXPECT_THAT(csv_error("a,n\nx,1\ny,2.5\n", kNumbers),
              AllOf(HasSubstr("column \"n\": line 3"), HasSubstr("found \"2.5\"")));
  EXPECT_THAT(csv_error(""), HasSubstr("expected a first line"));
  EXPECT_THAT(csv_error("a,n\n" + std::string(3 << 20, 'x') + ",1\n"),
              HasSubstr("a row is longer than 1.0 MiB"));
  EXPECT_THAT(csv_error("\x1F\x8B\x08 no more", {}, "log.csv"),
              AllOf(HasSubstr("log.csv"), HasSubstr("gzip")));
  EXPECT_THAT(csv_error("a\tn\nx\t1\n", {}, "log.txt"), HasSubstr("set delimiter = \"\\t\""));
}

}  // namespace
}  // namespace hstu
