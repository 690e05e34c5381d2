// A rank other than rank 0: computes its part of every step and evaluation, and writes nothing.
#pragma once

#include "hstu/training/train.h"

namespace hstu {

// Does what rank 0's train() announces, until it ends. `request` is that of rank 0, made from the same
// arguments.
void follow(const TrainRequest& request, Communicator& comm);

}  // namespace hstu
