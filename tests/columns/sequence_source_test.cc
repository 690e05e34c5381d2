#include "hstu/columns/sequence_source.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/columns/sequence_survey.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SequenceTest : public testing::Test {
 protected:
  Path file(const char* name, const std::string& text) const {
    write_file(folder_ / name, text);
    return folder_ / name;
  }

  // Every event as "user item time", however many are read at a time.
  std::vector<std::string> events(const SequenceQuestions& questions, std::int64_t batch_rows = 2) const {
    const SequenceFormat format = survey_sequences(questions).format;
    std::vector<std::string> columns = {"user", "item"};
    if (format.timed) columns.emplace_back("time");
    std::vector<std::string> all;
    for (const Path& path : questions.files) {
      const auto source = open_sequences(path, columns, format, batch_rows);
      RawBatch batch;
      while (source->next(batch)) {
        for (std::size_t r = 0; r < static_cast<std::size_t>(batch.rows); ++r) {
          std::string event;
          for (const RawColumn& column : batch.columns) {
            const std::int64_t value = column.integers[r];
            event += event.empty() ? "" : " ";
            event += column.kind == RawColumn::Kind::kText ? column.texts[static_cast<std::size_t>(value)]
                                                           : std::to_string(value);
          }
          all.push_back(event);
        }
      }
    }
    return all;
  }

  std::string error(const SequenceQuestions& questions) const {
    try {
      events(questions);
    } catch (const Error& refused) {
      std::string text = refused.what();
      for (std::size_t at = text.find(folder_.string()); at != std::string::npos;
           at = text.find(folder_.string()))
        text.erase(at, folder_.string().size() + 1);
      return text;
    }
    return "accepted";
  }

  Path folder_ = temporary_folder();
};

TEST_F(SequenceTest, LinesAreUsersWithTheirItems) {
  EXPECT_THAT(events({.files = {file("a", "7 1 2 3\n\n3  4\t5 \r\n9 6")}}),
              ElementsAre("7 1", "7 2", "7 3", "3 4", "3 5", "9 6"));
}

TEST_F(SequenceTest, RowsAreUserItemAndMaybeATime) {
  EXPECT_THAT(events({.files = {file("a", "7 1\n7 2\n")}}), ElementsAre("7 1", "7 2"));
  EXPECT_THAT(events({.files = {file("a", "7\t1\t100\n8\t2\t90\n7\t2\t50")}}),
              ElementsAre("7 1 100", "8 2 90", "7 2 50"));
  EXPECT_THAT(events({.files = {file("a", "7, 1, 100\n8,2 ,90\n")}}), ElementsAre("7 1 100", "8 2 90"));
  EXPECT_THAT(events({.files = {file("a", "u v,1,2024-05-01 10:00:00\n")}, .delimiter = ','}),
              ElementsAre("u v 1 2024-05-01 10:00:00"));
}

TEST_F(SequenceTest, IdsKeepAllTheirDigits) {
  EXPECT_THAT(events({.files = {file("a", "16777217 16777219 1099511627776 9223372036854775806\n")}}),
              ElementsAre("16777217 16777219", "16777217 1099511627776", "16777217 9223372036854775806"));
  // 2^63 - 1 is no id, so that these are texts.
  const SequenceAnswer texts = survey_sequences({.files = {file("a", "1 2 3 9223372036854775807\n")}});
  EXPECT_FALSE(texts.format.user_texts);
  EXPECT_TRUE(texts.format.item_texts);
  EXPECT_THAT(texts.notes.back(), HasSubstr("item ids are texts, because"));
  EXPECT_THAT(texts.notes.back(), HasSubstr("a: line 1: field 4 is \"9223372036854775807\""));
}

TEST_F(SequenceTest, LeadingZerosAndSignsMakeTexts) {
  for (const char* id : {"007", "-1", "1.0", "x", "18446744073709551617"}) {
    const SequenceAnswer answer = survey_sequences({.files = {file("a", fmt::format("1 2 3 {}\n", id))}});
    EXPECT_TRUE(answer.format.item_texts) << id;
  }
  EXPECT_FALSE(survey_sequences({.files = {file("a", "0 0 0 0\n")}}).format.item_texts);
  EXPECT_EQ(error({.files = {file("a", "1 2 3 4\n2 5 007\n")}, .item_texts = false}),
            "a: line 2: field 3: expected an integer from 0 to 2^63 - 2 for the item, found \"007\"");
}

TEST_F(SequenceTest, TextsAreUtf8) {
  EXPECT_THAT(events({.files = {file("a",
                                     "\xEF\xBB\xBF"
                                     "ana caf\xC3\xA9 b c\n")}}),
              ElementsAre("ana caf\xC3\xA9", "ana b", "ana c"));
  EXPECT_THAT(error({.files = {file("a", "1 2 3 4\n1 caf\xE9 3 4\n")}}),
              HasSubstr("a: line 2: field 2: expected text in UTF-8 for the item"));
  EXPECT_THAT(error({.files = {file("a", std::string("1 2 3 4\n1 2 \0 3\n", 16))}}),
              HasSubstr("a: it is no text"));
}

TEST_F(SequenceTest, TimesAreAlignedPlaceByPlace) {
  const Path items = file("a", "7 1 2\n8 3\n"), times = file("t", "7 100 90\n\n8 80\n");
  EXPECT_THAT(events({.files = {items}, .times = {times}}), ElementsAre("7 1 100", "7 2 90", "8 3 80"));
  const auto with = [&](const char* text) { return error({.files = {items}, .times = {file("t", text)}}); };
  EXPECT_EQ(with("7 100\n8 80\n"), "t: line 1: expected a time for item 2 of line 1 of a, found 1 times");
  EXPECT_EQ(with("7 1 2 3\n8 80\n"), "t: line 1: field 4: a time without an item: line 1 of a has 2 items");
  EXPECT_EQ(
      with("7 1 2\n9 80\n"),
      "t: line 2: field 1: expected the user \"8\", as in line 2 of a, found \"9\": both files must have "
      "the same users in the same order");
  EXPECT_EQ(with("7 1 2\n"), "t: it ends before the times of line 2 of a, the user \"8\"");
  EXPECT_EQ(with("7 1 2\n8 3\n9 4\n"), "t: line 3: the times of the user \"9\", who has no line in a");
  EXPECT_EQ(with("7 1 2\n8\n"), "t: line 2: expected a time for item 1 of line 2 of a, found 0 times");
}

TEST_F(SequenceTest, LinesThatContradictEachOtherAreErrors) {
  EXPECT_THAT(error({.files = {file("a", "1 2 3\n1 2\n")}}),
              AllOf(HasSubstr("a: line 2 has 2 fields, and"), HasSubstr("--layout lines")));
  EXPECT_THAT(events({.files = {file("a", "1 2 3\n1 2\n")}, .layout = SequenceLayout::kLines}),
              ElementsAre("1 2", "1 3", "1 2"));
  EXPECT_EQ(error({.files = {file("a", "1 2 3\n1 2\n")}, .layout = SequenceLayout::kRows}),
            "a: line 2: expected 3 fields (user, item, time), found 2");
  EXPECT_EQ(error({.files = {file("a", "1 2 3 4\n5\n")}}),
            "a: line 2: expected a user and at least one item, found the user alone");
  EXPECT_THAT(error({.files = {file("a", "1::2::3::4\n")}}),
              AllOf(HasSubstr("found one field"), HasSubstr("ratings.dat")));
  EXPECT_EQ(error({.files = {file("a", "1,2,3\n1,,3\n")}}),
            "a: line 2: field 2 is empty: expected a user and an item, or a time, in every field");
  EXPECT_THAT(error({.files = {file("a", "1,2,3\n1,2,\n")}}), HasSubstr("a: line 2: field 3 is empty"));
  EXPECT_THAT(error({.files = {file("a", ",1\n")}}), HasSubstr("a: line 1: field 1 is empty"));
  EXPECT_THAT(error({.files = {file("a", "1\t2 3 4\n")}}), HasSubstr("--delimiter tab, comma or blank"));
  EXPECT_THAT(error({.files = {file("a", "7,\"a,b\",10\n")}}), HasSubstr("hstu prepare csv reads quotes"));
  EXPECT_THAT(error({.files = {file("a", "")}}), HasSubstr("no lines"));
  EXPECT_THAT(error({.files = {file("a", " \n\n")}}), HasSubstr("no lines"));
  EXPECT_THAT(error({.files = {file("a", "1 2 3 " + std::string(5000, 'x') + "\n")}}),
              HasSubstr("a: line 1: field 4: a field has more than 4096 bytes, beginning with \"xxx"));
}

TEST_F(SequenceTest, AHeaderIsNoEvent) {
  EXPECT_THAT(error({.files = {file("a", "user_id,item_id\n1,2\n")}}),
              AllOf(HasSubstr("a: line 1: field 1 is \"user_id\""), HasSubstr("--header")));
  EXPECT_THAT(error({.files = {file("a", "who what when\n1 x 100\n2 y 120\n")}}), HasSubstr("--header"));
  EXPECT_THAT(error({.files = {file("a", "a b when\nc x 100\nd y 120\n")}}), HasSubstr("\"when\""));
  EXPECT_THAT(events({.files = {file("a", "user_id,item_id\n1,2\n")}, .header = HeaderLine::kSkipped}),
              ElementsAre("1 2"));
  EXPECT_THAT(events({.files = {file("a", "user b\nx c\n")}, .header = HeaderLine::kNone}),
              ElementsAre("user b", "x c"));
}

TEST_F(SequenceTest, AMessageNamesTheLineOfARow) {
  const Path path = file("a", "1 2 3 4\n\n2 5 6 7\n");
  const auto source =
      open_sequences(path, std::vector<std::string>{"item"}, survey_sequences({.files = {path}}).format, 2);
  RawBatch batch;
  ASSERT_TRUE(source->next(batch));
  EXPECT_THAT(place_of(batch, batch.columns[0], 1), HasSubstr("a: column \"item\": line 1"));
  ASSERT_TRUE(source->next(batch));
  EXPECT_THAT(place_of(batch, batch.columns[0], 1), HasSubstr("a: column \"item\": line 3"));
}

TEST_F(SequenceTest, ALineMayBeLongerThanABlock) {
  std::string line = "7";
  constexpr int kItems = 300'000;  // two megabytes
  for (int i = 0; i < kItems; ++i) line += fmt::format(" {}", 1'000'000 + i);
  const std::vector<std::string> all = events({.files = {file("a", line)}}, 10'000);
  ASSERT_EQ(all.size(), kItems);
  EXPECT_EQ(all.back(), fmt::format("7 {}", 1'000'000 + kItems - 1));
}

}  // namespace
}  // namespace hstu
