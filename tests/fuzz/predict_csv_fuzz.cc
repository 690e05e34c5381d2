// CSV of predict: rejected, or its fields, written in quotes, are read again as the same ones.
#include "fuzz/harness.h"
#include "hstu/predict/csv_reader.h"

namespace {

using namespace hstu;

using Rows = std::vector<std::vector<std::string>>;

// The header, and then the rows.
Rows read_all(const Path& file) {
  CsvReader reader{ByteSource(file)};
  Rows rows{reader.columns()};
  while (reader.next()) {
    rows.emplace_back();
    for (std::size_t c = 0; c < reader.columns().size(); ++c) {
      rows.back().emplace_back(reader.field(c));
      fuzz::accept_or_refuse([&] { reader.integer(c); });
    }
    require(reader.rows() == std::ssize(rows) - 1, "a row was lost or made up");
  }
  return rows;
}

std::string quoted(const Rows& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += c == 0 ? "\"" : ",\"";
      for (const char letter : row[c]) text += letter == '"' ? std::string("\"\"") : std::string(1, letter);
      text += "\"";
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::accept_or_refuse([&] {
    const Path folder = fuzz::fresh_folder();
    const Rows rows = read_all(fuzz::plain_file(folder / "t.csv", fuzz::text_of(data, size)));
    require(read_all(fuzz::plain_file(folder / "again.csv", quoted(rows))) == rows,
            "not the same after a round trip");
  });
}
