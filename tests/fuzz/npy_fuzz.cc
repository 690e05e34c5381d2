// A .npy file: rejected, or all of its elements are inside the file.
#include "fuzz/harness.h"
#include "hstu/base/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  return fuzz::accept_or_refuse([&] {
    const Path path = fuzz::plain_file(fuzz::fresh_folder() / "column.npy", fuzz::text_of(data, size));
    {
      const MappedFile file(path);
      const NpyHeader header = parse_npy_header(file.bytes(), path);
      require(header.data_offset <= size && header.count() >= 0, "a header that reaches beyond its file");
    }
    const NpyColumn<std::int64_t> column(path);
    fuzz::touch(column.values().data(), column.values().size_bytes());
  });
}
