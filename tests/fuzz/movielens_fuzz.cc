// MovieLens' text files: rejected with the line, or read to the end with columns of one length.
#include <array>

#include "fuzz/harness.h"
#include "hstu/columns/column_source.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  static constexpr std::array kFiles{"u.data", "ratings.dat", "ratings.csv",
                                     "u.item", "movies.dat",  "movies.csv"};
  if (size == 0) return 0;
  const std::size_t choice = data[0] % kFiles.size();
  return fuzz::accept_or_refuse([&] {
    const Path path =
        fuzz::plain_file(fuzz::fresh_folder() / kFiles[choice], fuzz::text_of(data + 1, size - 1));
    const std::vector<std::string> columns =
        choice < 3 ? std::vector<std::string>{"user", "item", "rating", "timestamp"}
                   : std::vector<std::string>{"item", "year"};
    const auto source = open_columns(path, columns);
    RawBatch batch;
    while (source->next(batch)) {
      for (const RawColumn& column : batch.columns) {
        const std::size_t length =
            column.kind == RawColumn::Kind::kReal ? column.reals.size() : column.integers.size();
        require(length == static_cast<std::size_t>(batch.rows), "a column of another length");
      }
    }
  });
}
