// Rows and ids from NumPy for `hstu import`: rejected, or a whole export with each id once, ascending.
#include "fuzz/harness.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/embedding/saved_table.h"
#include "hstu/run/table_files.h"

// Input: two bytes that choose the bytes of the first file, and both files.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  if (size < 2) return 0;
  const std::string_view files = fuzz::text_of(data + 2, size - 2);
  const std::size_t first = std::min<std::size_t>(files.size(), data[0] + 256 * data[1]);
  return fuzz::accept_or_refuse([&] {
    const Path folder = fuzz::fresh_folder();
    const Path rows = fuzz::plain_file(folder / "rows.npy", files.substr(0, first));
    const Path ids = fuzz::plain_file(folder / "ids.npy", files.substr(first));
    import_npy({{.table = "item", .rows = rows, .ids = ids}}, folder / "export");
    const Checkpoint imported(folder / "export");
    const SavedTable table(imported.section("tables/item"));
    std::int64_t last = -1;
    for (std::size_t i = 0; i < table.size(); ++i) {
      require(table.ids()[i] > last, "ids that do not ascend");
      last = table.ids()[i];
      fuzz::touch(table.row(i).data(), table.row(i).size_bytes());
    }
  });
}
