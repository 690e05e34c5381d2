// The dense parameters of a model: created once, identified by name in checkpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hstu/tensor/tape.h"

namespace hstu {

// The initial values of a parameter: a pure function of (seed, name, element of the whole parameter).
struct Initializer {
  enum class Kind { constant, uniform, normal } kind = Kind::constant;
  double value = 0;  // the constant, the bound of the uniform, the deviation of the normal

  static Initializer zeros() { return {}; }
  static Initializer ones() { return {Kind::constant, 1}; }
  static Initializer uniform(double bound) { return {Kind::uniform, bound}; }
  static Initializer normal(double deviation) { return {Kind::normal, deviation}; }
  // Glorot and Bengio (2010): variance 2 / (in + out).
  static Initializer xavier_uniform(std::int64_t in, std::int64_t out);
  static Initializer xavier_normal(std::int64_t in, std::int64_t out);
};

class ParameterSet {
 public:
  ParameterSet(std::uint64_t seed, DType type) : seed_(seed), type_(type) {}

  // Adds a parameter; the reference is valid as long as the set.
  // `shape`: of the whole parameter, of which this rank has the ranges of `division`, whose own shape is not
  // read.
  const Parameter& add(std::string name, Shape shape, const Initializer& initializer,
                       AxisDivision division = {});

  // Adds a parameter that divide() may divide.
  const Parameter& add_divisible(std::string name, Shape shape, const Initializer& initializer,
                                 const Divisible& divisible);

  // A tensor that is no parameter: it moves with them, and no checkpoint has it. The reference is valid as
  // long as the set.
  const Tensor& add_constant(Tensor value, const Divisible& divisible = {});

  // Of everything that is divisible this rank keeps its part, with the values that the whole has there. Once;
  // move_to() must follow.
  void divide(int rank, int ranks);

  NamedTensors all() const;
  std::int64_t count() const;        // number of values that this rank has
  std::int64_t whole_count() const;  // of whole parameters
  void clear_gradients(const Stream& stream = {}) const;
  // Moves values, gradients and constants to the context's device, a GPU.
  void move_to(const Context& context);
  // After move_to(): all gradients as one tensor (n); what is between them is 0.
  const Tensor& gradients() const { return gradients_; }
  const Parameter& find(const std::string& name) const;
  DType type() const { return type_; }

 private:
  std::uint64_t seed_;
  DType type_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  struct Constant {
    Tensor value;
    Divisible divisible;
  };
  std::vector<std::unique_ptr<Constant>> constants_;
  Tensor gradients_;
};

}  // namespace hstu
