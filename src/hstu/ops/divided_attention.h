// Attention of samples whose rows the ranks of a group share.
#pragma once

#include "hstu/ops/attention.h"

namespace hstu::ops {

// attention() of a shape with a division.
Variable divided_attention(Tape& tape, const Columns& q, const Columns& k, const Columns& v,
                           const AttentionShape& shape);

}  // namespace hstu::ops
