// Codes of items: rejected, or all of them are codes of their level. Input: a byte that chooses the form, and
// the file; of a folder, the manifest up to a zero byte, then the codes (V, 2) behind the ids.
#include "fuzz/harness.h"
#include "hstu/codes/code_trie.h"
#include "hstu/codes/codes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  if (size < 1) return 0;
  std::string_view text = fuzz::text_of(data + 1, size - 1);
  return fuzz::accept_or_refuse([&] {
    Path path = fuzz::fresh_folder();
    switch (data[0] % 4) {
      case 0:
        path = fuzz::plain_file(path / "index.json", text);
        break;
      case 1:
        path = fuzz::plain_file(path / "tensor.npy", text);
        break;
      case 2:
        path = fuzz::plain_file(path / "tensor.safetensors", text);
        break;
      default:
        fuzz::plain_file(path / "manifest.json", fuzz::take_part(text));
        fuzz::plain_npy<std::int64_t>(path / "ids.i64.npy", fuzz::numbers_of(fuzz::take_part(text)));
        fuzz::plain_file(path / "codes.i32.npy", text);
    }
    const ItemCodes codes = read_codes(path);
    codes.check_valid("codes");
    const CodeTrie trie(codes);
    require(trie.find(codes.tuple(0)) >= 0, "an item without a tuple");
  });
}
