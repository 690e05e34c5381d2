#include "hstu/optimizer/optimizer_section.h"

#include <vector>

namespace hstu {
namespace {

std::vector<TensorSpec> specs_of(const DenseOptimizer& optimizer) {
  std::vector<TensorSpec> specs{{"step", DType::i64, {1}}};
  for (const auto& [name, tensor] : optimizer.state())
    specs.push_back({name, tensor.dtype(), tensor.shape()});
  return specs;
}

void save(const DenseOptimizer& optimizer, SectionWriter& writer) {
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : optimizer.state()) {
    values.push_back(tensor.to_host(optimizer.context().stream));
    check_finite(values.back(), "optimizer state " + name);
  }
  writer.begin(specs_of(optimizer));
  const std::int64_t steps = optimizer.steps();
  writer.write(&steps, sizeof steps);
  for (const Tensor& value : values) writer.write(value);
}

void load(DenseOptimizer& optimizer, const SectionReader& reader) {
  const SafetensorsFile file = reader.file();
  file.expect(specs_of(optimizer));
  for (auto& [name, tensor] : optimizer.state()) file.read(name, tensor, optimizer.context().stream);
  optimizer.set_steps(file.values<std::int64_t>("step", {1})[0]);
}

}  // namespace

Section optimizer_section(DenseOptimizer& optimizer) {
  return {"optimizer", [&optimizer](SectionWriter& writer) { save(optimizer, writer); },
          [&optimizer](const SectionReader& reader) { load(optimizer, reader); }};
}

}  // namespace hstu
