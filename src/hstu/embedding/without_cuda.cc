// Takes the place of cuda/ in a build without CUDA.
#ifndef HSTU_WITH_CUDA

#include "hstu/base/error.h"
#include "hstu/embedding/changed_rows.h"
#include "hstu/embedding/wire_rows.h"

namespace hstu::cuda {
namespace {

[[noreturn]] void refuse_wire() {
  fail("this hstu was built without CUDA");
}

}  // namespace

void to_wire(std::span<const WireRows>, Tensor, const Stream&) {
  refuse_wire();
}
void from_wire(std::span<const WireRows>, const Stream&) {
  refuse_wire();
}
void find_changed(std::span<const ChangedRows>, const Stream&) {
  refuse_wire();
}

}  // namespace hstu::cuda

#endif
