#include "hstu/optimizer/optimizer_section.h"

#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/json.h"

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
  nlohmann::json begun = nlohmann::json::object();
  for (std::size_t p = 0; p < optimizer.parameters().size(); ++p)
    if (optimizer.begun()[p] > 0) begun[optimizer.parameters()[p]->name] = optimizer.begun()[p];
  if (!begun.empty()) writer.describe({{"begun", begun}});
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
  std::vector<std::int64_t> begun;
  for (const Parameter* p : optimizer.parameters()) begun.push_back(saved_begun(reader, p->name));
  optimizer.set_begun(std::move(begun));
}

}  // namespace

std::int64_t saved_begun(const SectionReader& reader, const std::string& parameter) {
  return reader.is_described() ? reader.description().at("begun").value(parameter, std::int64_t{0}) : 0;
}

Section optimizer_section(DenseOptimizer& optimizer, std::vector<Tensor> whole) {
  return {"optimizer",
          [&optimizer, whole = std::move(whole)](SectionWriter& writer) {
            save(optimizer, whole.empty() ? own_state(optimizer) : whole, writer);
          },
          [&optimizer](const SectionReader& reader) { load(optimizer, reader); }};
}

}  // namespace hstu
