#include "hstu/checkpoint/section.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/base/finite.h"

namespace hstu {
namespace {

using nlohmann::json;

constexpr std::string_view kTables = "tables/";

// The last part of the name of a section "tables/NAME"; "" for other sections.
std::string table_of(const std::string& section) {
  return section.starts_with(kTables) ? section.substr(kTables.size()) : "";
}

std::vector<TensorSpec> specs_of(const NamedTensors& parameters) {
  std::vector<TensorSpec> specs;
  for (const Parameter* p : parameters) specs.push_back({p->name, p->value.dtype(), p->whole_shape()});
  return specs;
}

std::vector<Tensor> own_values(const NamedTensors& parameters, const Stream& stream) {
  std::vector<Tensor> values;
  for (const Parameter* p : parameters) {
    require(!p->division.is_divided(), "parameter {}: a part is saved as the whole", p->name);
    values.push_back(p->value.to_host(stream));
  }
  return values;
}

}  // namespace

void read_parameter(const SafetensorsFile& file, const std::string& name, Parameter& parameter,
                    const Stream& stream) {
  if (!parameter.division.is_divided()) return file.read(name, parameter.value, stream);
  Tensor part = Tensor::empty(parameter.value.shape(), parameter.value.dtype());
  with_float_type(part.dtype(), [&]<typename T>() {
    copy_from_whole(parameter.division, file.values<T>(name, parameter.division.whole).data(),
                    part.mutable_data<T>());
  });
  parameter.value.copy_from(part, stream);
  stream.synchronize();
}

std::string section_file(const std::string& name) {
  return name + ".safetensors";
}

SectionWriter::SectionWriter(Path folder, std::string name, CheckpointManifest& manifest,
                             const CheckpointLayer* base)
    : folder_(std::move(folder)), name_(std::move(name)), manifest_(manifest), base_(base) {}

std::optional<SectionReader> SectionWriter::base() const {
  if (base_ == nullptr || !SectionReader::exists(name_, base_->manifest)) return std::nullopt;
  return SectionReader(base_->path, name_, base_->manifest);
}

void SectionWriter::describe(json description) {
  if (table_of(name_).empty()) {
    require(!manifest_.state.contains(name_), "two sections of a checkpoint are called \"{}\"", name_);
    manifest_.state[name_] = std::move(description);
  } else {
    manifest_.tables.push_back(std::move(description));
  }
}

void SectionWriter::begin(const std::vector<TensorSpec>& tensors) {
  const Path path = folder_ / section_file(name_);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  check(!error, "cannot create the folder {}: {}", path.parent_path().string(), error.message());
  file_.emplace(path, tensors);
}

void SectionWriter::write(const void* data, std::size_t bytes) {
  file_.value().write(data, bytes);
}

void SectionWriter::close() {
  if (!file_) return;
  file_->close();
  manifest_.files[section_file(name_)] = {file_->bytes(), file_->checksum()};
  file_.reset();
  fault_point("save.file");
}

SectionReader::SectionReader(Path folder, std::string name, const CheckpointManifest& manifest,
                             const CheckpointLayer* base)
    : folder_(std::move(folder)), name_(std::move(name)), manifest_(&manifest), base_(base) {
  check(exists(name_, manifest), "{}: expected \"{}\", found none: it is of another model", folder_.string(),
        name_);
}

std::optional<SectionReader> SectionReader::base() const {
  if (base_ == nullptr || !exists(name_, base_->manifest)) return std::nullopt;
  return SectionReader(base_->path, name_, base_->manifest);
}

const json* SectionReader::find_description(const std::string& name, const CheckpointManifest& manifest) {
  const std::string table = table_of(name);
  if (table.empty()) return manifest.state.contains(name) ? &manifest.state[name] : nullptr;
  const auto found = std::find_if(manifest.tables.begin(), manifest.tables.end(),
                                  [&](const json& entry) { return entry.value("name", "") == table; });
  return found == manifest.tables.end() ? nullptr : &*found;
}

bool SectionReader::exists(const std::string& name, const CheckpointManifest& manifest) {
  return manifest.files.contains(section_file(name)) || find_description(name, manifest) != nullptr;
}

const json& SectionReader::description() const {
  const json* const description = find_description(name_, *manifest_);
  check(description != nullptr, "{}: the manifest does not describe \"{}\"", folder_.string(), name_);
  return *description;
}

bool SectionReader::is_described() const {
  return find_description(name_, *manifest_) != nullptr;
}

SafetensorsFile SectionReader::file() const {
  return SafetensorsFile(folder_ / section_file(name_));
}

void check_finite(const Tensor& tensor, const std::string& what) {
  const auto finite = [&]<typename Float>() {
    return first_not_finite(tensor.data<Float>(), tensor.size()) == tensor.size();
  };
  if (tensor.dtype() == DType::f32 && finite.operator()<float>()) return;
  if (tensor.dtype() == DType::f64 && finite.operator()<double>()) return;
  if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::f64) return;
  throw NotFiniteError(what + " is not finite");
}

Section parameters_section(const NamedTensors& parameters, const Stream& stream, std::vector<Tensor> whole) {
  const auto save = [parameters, stream, whole = std::move(whole)](SectionWriter& writer) {
    const std::vector<Tensor> values = whole.empty() ? own_values(parameters, stream) : whole;
    for (std::size_t p = 0; p < values.size(); ++p)
      check_finite(values[p], "parameter " + parameters[p]->name);
    writer.begin(specs_of(parameters));
    for (const Tensor& value : values) writer.write(value);
  };
  const auto load = [parameters, stream](const SectionReader& reader) {
    const SafetensorsFile file = reader.file();
    file.expect(specs_of(parameters));
    for (Parameter* p : parameters) read_parameter(file, p->name, *p, stream);
  };
  return {"dense", save, load};
}

}  // namespace hstu
