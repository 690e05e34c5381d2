// Golden values: tests/golden/NAME.safetensors, written by tools/golden.py (tests/golden/README.md lists the
// tensors).
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/checkpoint/safetensors.h"
#include "hstu/tensor/tape.h"

namespace hstu::testing {

class Golden {
 public:
  explicit Golden(const std::string& name) : file_(Path(HSTU_GOLDEN_DIR) / (name + ".safetensors")) {}

  Tensor tensor(const std::string& name) const {
    const TensorSpec& spec = find(name);
    Tensor tensor = Tensor::empty(spec.shape, spec.dtype);
    file_.read(name, tensor);
    return tensor;
  }
  template <typename T>
  std::vector<T> values(const std::string& name) const {
    const auto span = file_.values<T>(name, find(name).shape);
    return {span.begin(), span.end()};
  }
  double scalar(const std::string& name) const { return values<double>(name).at(0); }
  bool has(const std::string& name) const {
    for (const TensorSpec& spec : file_.tensors()) {
      if (spec.name == name) return true;
    }
    return false;
  }
  // An input whose gradient is wanted.
  Variable variable(const std::string& name) const { return Variable(tensor(name)); }

 private:
  const TensorSpec& find(const std::string& name) const {
    for (const TensorSpec& spec : file_.tensors()) {
      if (spec.name == name) return spec;
    }
    throw Error("no golden tensor is named " + name);
  }
  SafetensorsFile file_;
};

// Both are fp64 results of the same formula: they differ by rounding alone.
inline void expect_golden(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 1;
  for (std::int64_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(expected.data<double>()[i]));
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(found.data<double>()[i], expected.data<double>()[i], 1e-12 * largest)
        << what << " element " << i;
  }
}

}  // namespace hstu::testing
