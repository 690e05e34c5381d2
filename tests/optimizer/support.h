// A few parameters for tests of optimizers.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "hstu/base/random.h"
#include "hstu/base/threads.h"
#include "hstu/tensor/parameter.h"

namespace hstu::testing_optimizer {

class Parameters {
 public:
  Parameter& add(std::string name, const std::vector<float>& value) {
    const auto n = static_cast<std::int64_t>(value.size());
    storage_.push_back({std::move(name), Tensor::from<float>({n}, value), Tensor::zeros({n}, DType::f32)});
    list_.push_back(&storage_.back());
    return storage_.back();
  }
  const NamedTensors& list() const { return list_; }

 private:
  std::deque<Parameter> storage_;  // its elements stay where they are
  NamedTensors list_;
};

inline std::vector<float> random_values(std::int64_t n, std::uint64_t key) {
  RandomStream random{.key = key};
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values) v = static_cast<float>(2.0 * random.uniform() - 1.0);
  return values;
}

inline void set_gradient(Parameter& parameter, const std::vector<float>& gradient) {
  std::copy(gradient.begin(), gradient.end(), parameter.gradient.mutable_data<float>());
}

inline std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.size()};
}

}  // namespace hstu::testing_optimizer
