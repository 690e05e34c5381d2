// The names of a dataset's codes: rejected, or each name leads to an id and back to itself.
#include "fuzz/harness.h"
#include "hstu/dataset/names.h"
#include "hstu/dataset/names_writer.h"

// Input: a byte whose lowest bit says whether the ids are hashes; the ids, the offsets and the order, each
// ended by a zero byte; the texts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  if (size == 0) return 0;
  std::string_view rest = fuzz::text_of(data + 1, size - 1);
  return fuzz::accept_or_refuse([&] {
    const Path folder = fuzz::fresh_folder();
    Manifest manifest;
    manifest.names = {"item"};
    const auto write = [&]<typename T>(const std::string& file, const std::vector<std::int64_t>& numbers, T) {
      fuzz::plain_npy<T>(folder / file, numbers);
      manifest.columns[file] = {
          .type = npy_type<T>(),
          .count = std::ssize(numbers),
          .bytes = static_cast<std::int64_t>(std::filesystem::file_size(folder / file))};
    };
    const auto ids = fuzz::numbers_of(fuzz::take_part(rest));
    auto offsets = fuzz::numbers_of(fuzz::take_part(rest)), order = fuzz::numbers_of(fuzz::take_part(rest));
    offsets.resize(ids.size() + 1);  // a manifest of other counts is rejected
    order.resize(ids.size());
    write(name_ids_file("item"), ids, std::int64_t{});
    write(name_offsets_file("item"), offsets, std::int64_t{});
    if ((data[0] & 1) == 0) write(name_order_file("item"), order, std::int64_t{});
    write(names_file("item"), {rest.begin(), rest.end()}, std::uint8_t{});
    const Names names(folder, manifest, "item");
    for (std::int64_t row = 0; row < names.size(); ++row) {
      fuzz::accept_or_refuse([&] {
        const std::string_view name = names.name(row);
        fuzz::touch(name.data(), name.size());
        if (const auto id = names.id_of(name))
          require(std::find(ids.begin(), ids.end(), *id) != ids.end(), "an id of no row");
        if (const auto again = names.name_of(names.id(row))) fuzz::touch(again->data(), again->size());
      });
    }
    names.id_of("a");
    names.name_of(0);
  });
}
