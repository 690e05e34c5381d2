// Sections: the parts of a checkpoint. A component describes the state that it needs to continue as a
// section; a checkpoint is a list of sections and does not depend on their content. docs/checkpoint.md
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "hstu/base/files.h"
#include "hstu/checkpoint/manifest.h"
#include "hstu/checkpoint/safetensors.h"
#include "hstu/tensor/parameter.h"

namespace hstu {

// Reads the content of one section.
class SectionReader {
 public:
  // Throws Error if the checkpoint has no section of this name. `base`: of the checkpoint, if it has one.
  SectionReader(Path folder, std::string name, const CheckpointManifest& manifest,
                const CheckpointLayer* base = nullptr);

  // The same section of the base; none: this one is whole.
  std::optional<SectionReader> base() const;

  const Path& folder() const { return folder_; }  // of the checkpoint, for messages
  // The argument of describe(). Throws Error if the section has no description.
  const nlohmann::json& description() const;
  bool is_described() const;
  // The section's file. Throws Error if it does not exist or is not a safetensors file.
  SafetensorsFile file() const;

  static bool exists(const std::string& name, const CheckpointManifest& manifest);

 private:
  static const nlohmann::json* find_description(const std::string& name, const CheckpointManifest& manifest);

  Path folder_;
  std::string name_;
  const CheckpointManifest* manifest_;
  const CheckpointLayer* base_;
};

// Writes the content of one section: a description, a file of tensors, or both.
class SectionWriter {
 public:
  // `folder`: of the checkpoint. Records what is written in `manifest`, which must outlive this object.
  // `base`: see save_checkpoint.
  SectionWriter(Path folder, std::string name, CheckpointManifest& manifest,
                const CheckpointLayer* base = nullptr);

  // The same section of the base, of which this one may keep the changes alone; none: it must be whole.
  std::optional<SectionReader> base() const;

  // Small values, kept in the manifest. At most once.
  void describe(nlohmann::json description);
  // Opens the section's file. Data must follow in the order of `tensors`. At most once.
  void begin(const std::vector<TensorSpec>& tensors);
  void write(const void* data, std::size_t bytes);
  void write(const Tensor& tensor) { write(tensor.raw(), tensor.bytes()); }
  // Closes the file. Throws InternalError if the bytes written are fewer or more than the tensors hold.
  void close();

 private:
  Path folder_;
  std::string name_;
  CheckpointManifest& manifest_;
  const CheckpointLayer* base_;
  std::optional<SafetensorsWriter> file_;
};

std::string section_file(const std::string& name);  // relative to the checkpoint: "dense.safetensors"

struct Section {
  // "dense" or "tables/item". Descriptions of sections "tables/..." form the list `tables` of the manifest,
  // the others are values of its `state`.
  std::string name;
  // Writes the state. Throws NotFiniteError naming the first NaN or infinity, before it writes anything.
  std::function<void(SectionWriter& writer)> save;
  // Fills the state from the section. Throws Error if it does not fit, before it changes anything.
  std::function<void(const SectionReader& reader)> load;
  // If true, a checkpoint of an earlier version may lack the section; load is then not called.
  bool may_be_absent = false;
};

// Throws NotFiniteError naming `what` if a tensor of floats holds a NaN or an infinity.
void check_finite(const Tensor& tensor, const std::string& what);

// Reads the values of a parameter, or of the part that this rank has of it, from the whole under `name`.
void read_parameter(const SafetensorsFile& file, const std::string& name, Parameter& parameter,
                    const Stream& stream);

// The values of the dense parameters, each whole and under its name in the section's file. `stream`: of their
// device. A rank that has parts of parameters loads those, and saves `whole`: the values of whole parameters,
// in host memory.
Section parameters_section(const NamedTensors& parameters, const Stream& stream = {},
                           std::vector<Tensor> whole = {});

}  // namespace hstu
