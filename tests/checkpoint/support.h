// A small model to save and load, and temporary folders.
#pragma once

#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/base/random.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/embedding/table_section.h"
#include "hstu/optimizer/optimizer_section.h"
#include "support/table_rows.h"

namespace hstu::testing_checkpoint {

// An empty folder named for the running test, removed at the end of its scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = Path(testing::TempDir()) /
            fmt::format("hstu_{}_{}_{}", test->test_suite_name(), test->name(), getpid());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  operator const Path&() const { return path_; }  // NOLINT: implicit, so that it can be used as a path.
  Path operator/(const std::string& name) const { return path_ / name; }

 private:
  Path path_;
};

// Overwrites a file in place, without the temporary name and fsync of write_file.
inline void scribble(const Path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// The message of the Error that `body` throws; "" if it throws none.
template <typename ErrorType = Error, typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "";
}

// Every file under `folder` by relative path.
inline std::map<std::string, std::string> content_of(const Path& folder) {
  std::map<std::string, std::string> content;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      content[entry.path().lexically_relative(folder).generic_string()] = read_file(entry.path());
  return content;
}

// Writes a NaN into a tensor of a file and updates the checksums.
inline void spoil_file(const Path& checkpoint, const std::string& name, const std::string& tensor,
                       std::size_t place) {
  const Path path = checkpoint / name;
  std::string bytes = read_file(path);
  const SafetensorsFile file(path);
  std::size_t offset = bytes.size();  // the tensors are at the end of the file
  for (auto spec = file.tensors().rbegin(); spec != file.tensors().rend(); ++spec) {
    offset -= Tensor::empty(spec->shape, spec->dtype).bytes();
    if (spec->name == tensor) break;
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + offset + place * sizeof nan, &nan, sizeof nan);
  scribble(path, bytes);
  CheckpointManifest manifest = read_checkpoint_manifest(checkpoint);
  manifest.files[name].checksum = file_checksum(path);
  write_checkpoint_manifest(checkpoint, manifest);
}

// Two dense parameters, two tables, Adam for both; every training step updates all of them.
struct Model {
  explicit Model(std::uint64_t seed = 1, RowOptimizerKind kind = RowOptimizerKind::adam)
      : tables({{"item", 1000, 6}, {"user", 50, 6}}, {.kind = kind}, seed),
        optimizer(make_parameters(), {}) {}

  void train(int steps) {
    for (int s = 0; s < steps; ++s, ++step) {
      RandomStream random{.key = derive_key(9, "step"), .index = static_cast<std::uint64_t>(step) * 1000};
      for (Parameter* p : list)
        for (std::int64_t i = 0; i < p->gradient.size(); ++i)
          p->gradient.mutable_data<float>()[i] = static_cast<float>(random.normal());
      optimizer.step(0.01);
      for (std::size_t t = 0; t < tables.size(); ++t) {
        std::vector<std::int64_t> ids;
        for (std::int64_t id = 49 - step % 3; id > 0; id -= 7) ids.push_back(id);
        std::vector<float> gradients(ids.size() * 6);
        for (float& g : gradients) g = static_cast<float>(random.normal());
        testing_embedding::apply_gradients(tables[t], ids, gradients.data(), 0.01);
      }
    }
  }

  std::vector<Section> sections() {
    std::vector<Section> all{parameters_section(list), optimizer_section(optimizer)};
    for (Section& section : table_sections(tables)) all.push_back(std::move(section));
    return all;
  }
  Path save(const Path& folder) {
    return save_checkpoint(folder, step, sections(), {{"samples", step * 32}, {"loss", 0.1 + 0.2}});
  }
  void load(const Path& path) {
    const Checkpoint checkpoint(path);
    checkpoint.load(sections());
    step = checkpoint.step();
  }

  // One update of a row by a gradient whose values are all `gradient`.
  void update(std::size_t table, std::int64_t id, float gradient, double learning_rate) {
    const std::vector<float> gradients(6, gradient);
    testing_embedding::apply_gradients(tables[table], std::span(&id, 1), gradients.data(), learning_rate);
  }

  std::int64_t step = 0;
  std::deque<Parameter> storage;
  NamedTensors list;
  TableSet tables;
  DenseOptimizer optimizer;

 private:
  NamedTensors make_parameters() {
    for (const auto& [name, shape] :
         {std::pair<const char*, Shape>{"head.weight", {3, 4}}, {"head.bias", {3}}}) {
      storage.push_back({name, Tensor::zeros(shape, DType::f32), Tensor::zeros(shape, DType::f32)});
      list.push_back(&storage.back());
    }
    return list;
  }
};

}  // namespace hstu::testing_checkpoint
