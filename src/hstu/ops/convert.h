// Activations and weights in the type that a part of a model computes in.
#pragma once

#include <map>

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// x in `type`: x itself if it has that type, otherwise a copy between f32 and bf16. The gradient has the type
// of x.
Variable convert(Tape& tape, const Variable& x, DType type);

// A parameter as an operand of products in `type`: the parameter, or a copy of it. Its gradient is the
// parameter's, in the parameter's type: sums over a batch keep their precision.
Variable weight(Tape& tape, const Parameter& parameter, DType type);

// Copies that weight() has made, for many forward passes with the same parameters.
class KeptWeights {
 public:
  // While it lives, weight() of this thread on a tape that does not record makes each copy once.
  class Use {
   public:
    explicit Use(KeptWeights& kept);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    KeptWeights* before_;
  };

  // The stream has been waited for since all copies that passes will ask for were made.
  void set_ready() { ready_ = true; }
  // Those in use by this thread; false: none are.
  static bool are_ready();

 private:
  friend Variable weight(Tape& tape, const Parameter& parameter, DType type);
  bool ready_ = false;
  std::map<const Parameter*, Tensor> copies_;  // of one type
};

}  // namespace hstu::ops
