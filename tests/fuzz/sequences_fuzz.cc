// Lines of ids, and those of their times: rejected with file and line, or read to the end with columns of one
// length.
#include <limits>

#include "fuzz/harness.h"
#include "hstu/columns/event_times.h"
#include "hstu/columns/sequence_source.h"
#include "hstu/columns/sequence_survey.h"

namespace {

using namespace hstu;

SequenceQuestions questions_of(unsigned bits, const Path& items, const Path& times) {
  SequenceQuestions questions{.files = {items}};
  if ((bits & 1) != 0) questions.times = {times};
  if ((bits & 2) != 0) questions.layout = SequenceLayout::kLines;
  if ((bits & 4) != 0) questions.layout = SequenceLayout::kRows;
  if ((bits & 8) != 0) questions.delimiter = ',';
  if ((bits & 16) != 0) questions.delimiter = '\t';
  if ((bits & 32) != 0) questions.header = HeaderLine::kNone;
  if ((bits & 64) != 0) questions.item_texts = true;
  return questions;
}

void read(const SequenceQuestions& questions, std::int64_t batch_rows) {
  const SequenceFormat format = survey_sequences(questions).format;
  std::vector<std::string> columns = {"item", "user"};
  if (format.timed) columns.emplace_back("time");
  const auto source = open_sequences(questions.files[0], columns, format, batch_rows);
  RawBatch batch;
  while (source->next(batch)) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const RawColumn& column = batch.columns[c];
      require(std::ssize(column.integers) == batch.rows, "a column of another length");
      for (const std::int64_t value : column.integers) {
        if (column.kind == RawColumn::Kind::kText)
          require(value >= 0 && value < std::ssize(column.texts), "a text that does not exist");
        else if (c < 2)
          require(value >= 0 && value < std::numeric_limits<std::int64_t>::max(), "an id that is none");
      }
      for (std::int64_t r = 0; r < batch.rows; ++r)
        require(batch.line_of(batch.first_row + r) >= 1, "a row without a line");
    }
    if (format.timed)
      fuzz::accept_or_refuse([&] { times_of(batch, batch.columns[2], TimeUnit::kMilliseconds); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  return fuzz::accept_or_refuse([&] {
    std::string_view rest = fuzz::text_of(data + 2, size - 2);
    const Path folder = fuzz::fresh_folder();
    // The part before a byte of 1; a byte 0 is one of the contents.
    const std::size_t border = std::min(rest.find('\1'), rest.size());
    const Path items = fuzz::plain_file(folder / "items", rest.substr(0, border));
    rest.remove_prefix(std::min(border + 1, rest.size()));
    read(questions_of(data[0], items, fuzz::plain_file(folder / "times", rest)), 1 + data[1] % 4);
  });
}
