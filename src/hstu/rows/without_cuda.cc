// Takes the place of cuda/ in a build without CUDA.
#ifndef HSTU_WITH_CUDA

#include "hstu/base/error.h"
#include "hstu/rows/not_finite_row.h"
#include "hstu/rows/table_lines.h"

namespace hstu::cuda {
namespace {

[[noreturn]] void refuse() {
  fail("this hstu was built without CUDA");
}

}  // namespace

std::unique_ptr<Placement> device_rows(std::span<const PlacedTable>, const Context&) {
  refuse();
}
std::unique_ptr<TableLines> make_table_lines(std::span<const PlacedTable>, const Context&) {
  refuse();
}
std::optional<NotFiniteRow> first_not_finite(std::span<const Tensor>, const Context&) {
  refuse();
}
void to_wire(std::span<const WireRows>, Tensor, const Stream&) {
  refuse();
}
void from_wire(std::span<const WireRows>, const Stream&) {
  refuse();
}
}  // namespace hstu::cuda

#endif
