// CSV, plain or said to be compressed: rejected with the file, or read to the end with columns of one length.
#include "fuzz/harness.h"
#include "hstu/columns/csv_source.h"
#include "hstu/columns/event_times.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  if (size == 0) return 0;
  const bool compressed = (data[0] & 1) != 0, headless = (data[0] & 2) != 0;
  CsvFormat format{.integers = {"n"}, .numbers = {"x"}};
  if (headless) format.columns = {"a", "n", "x"};
  if ((data[0] & 4) != 0) format.quote = std::nullopt;
  if ((data[0] & 8) != 0) format.escape = '\\';
  return fuzz::accept_or_refuse([&] {
    const Path path = fuzz::plain_file(fuzz::fresh_folder() / (compressed ? "log.csv.gz" : "log.csv"),
                                       fuzz::text_of(data + 1, size - 1));
    const std::vector<std::string> columns = {"x", "a", "n"};
    const auto source = open_csv(path, columns, format);
    RawBatch batch;
    while (source->next(batch)) {
      for (const RawColumn& column : batch.columns) {
        const std::size_t length =
            column.kind == RawColumn::Kind::kReal ? column.reals.size() : column.integers.size();
        require(length == static_cast<std::size_t>(batch.rows), "a column of another length");
      }
      if (!batch.columns[1].nulls.empty()) continue;
      fuzz::accept_or_refuse([&] { times_of(batch, batch.columns[1], TimeUnit::kMilliseconds); });
    }
  });
}
