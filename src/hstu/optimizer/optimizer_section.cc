#include "hstu/optimizer/optimizer_section.h"

#include <utility>

#include "hstu/base/error.h"

namespace hstu {
namespace {

std::vector<TensorSpec> specs_of(const DenseOptimizer& optimizer) {
  std::vector<TensorSpec> specs = optimizer.whole_state();
  specs.insert(specs.begin(), {"step", DType::i64, {1}});
  return specs;
}

std::vector<Tensor> own_state(const DenseOptimizer& optimizer) {
  std::vector<Tensor> values;
  auto state = optimizer.state().begin();
  for (const TensorSpec& spec : optimizer.whole_state()) {  // none: plain SGD, of any number of ranks
    require(optimizer.shard().ranks == 1, "the state of {} ranks is saved as one", optimizer.shard().ranks);
    const bool is_here = state != optimizer.state().end() && state->name == spec.name;
    require(!is_here || state->tensor.shape() == spec.shape, "{}: a part is saved as the whole", spec.name);
    values.push_back(is_here ? (state++)->tensor.to_host(optimizer.context().stream)
                             : Tensor::empty(spec.shape, spec.dtype));  // of a parameter without elements
  }
  return values;
}

void save(const DenseOptimizer& optimizer, const std::vector<Tensor>& values, SectionWriter& writer) {
  const std::vector<TensorSpec> specs = specs_of(optimizer);
  for (std::size_t i = 0; i < values.size(); ++i)
    check_finite(values[i], "optimizer state " + specs[i + 1].name);
  writer.begin(specs);
  const std::int64_t steps = optimizer.steps();
  writer.write(&steps, sizeof steps);
  for (const Tensor& value : values) writer.write(value);
}

void load(DenseOptimizer& optimizer, const SectionReader& reader) {
  const SafetensorsFile file = reader.file();
  file.expect(specs_of(optimizer));
  const Stream& stream = optimizer.context().stream;
  for (DenseOptimizer::State& state : optimizer.state()) {
    const Parameter& parameter = *optimizer.parameters()[state.parameter];
    const auto whole = file.values<float>(state.name, parameter.whole_shape());
    std::vector<float> part;
    if (parameter.division.is_divided()) {
      part.resize(static_cast<std::size_t>(parameter.value.size()));
      copy_from_whole(parameter.division, whole.data(), part.data());
    }
    const float* const values = part.empty() ? whole.data() : part.data();
    copy_bytes(state.tensor.mutable_raw(), values + state.begin, state.tensor.bytes(), stream);
    stream.synchronize();
  }
  optimizer.set_steps(file.values<std::int64_t>("step", {1})[0]);
}

}  // namespace

Section optimizer_section(DenseOptimizer& optimizer, std::vector<Tensor> whole) {
  return {"optimizer",
          [&optimizer, whole = std::move(whole)](SectionWriter& writer) {
            save(optimizer, whole.empty() ? own_state(optimizer) : whole, writer);
          },
          [&optimizer](const SectionReader& reader) { load(optimizer, reader); }};
}

}  // namespace hstu
