// A safetensors file: rejected, or all of its tensors are inside the file.
#include "fuzz/harness.h"
#include "hstu/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  return fuzz::accept_or_refuse([&] {
    const SafetensorsFile file(
        fuzz::plain_file(fuzz::fresh_folder() / "dense.safetensors", fuzz::text_of(data, size)));
    for (const TensorSpec& spec : file.tensors()) {
      if (spec.dtype == DType::f32) {
        const auto values = file.values<float>(spec.name, spec.shape);
        fuzz::touch(values.data(), values.size_bytes());
      } else if (spec.dtype == DType::i64) {
        const auto values = file.values<std::int64_t>(spec.name, spec.shape);
        fuzz::touch(values.data(), values.size_bytes());
      }
    }
  });
}
