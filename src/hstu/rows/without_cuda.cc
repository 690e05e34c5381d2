// Takes the place of cuda/ in a build without CUDA.
#ifndef HSTU_WITH_CUDA

#include "hstu/base/error.h"
#include "hstu/rows/device_rows.h"

namespace hstu::cuda {
namespace {

[[noreturn]] void refuse() {
  fail("this hstu was built without CUDA");
}

}  // namespace

std::unique_ptr<RowStore> make_row_store(const RowShape&, const Context&) {
  refuse();
}
std::unique_ptr<RowLines> make_row_lines(const RowShape&, const Context&) {
  refuse();
}
void find_slots(std::span<const DeviceRows>) {
  refuse();
}
void create_slots(std::span<const DeviceRows>, std::size_t) {
  refuse();
}
void gather(std::span<const DeviceRows>) {
  refuse();
}
void update(std::span<const DeviceRows>, double, const float*) {
  refuse();
}
void merge(std::span<const DeviceRows>, bool) {
  refuse();
}
std::optional<NotFiniteRow> first_not_finite(std::span<const DeviceRows>) {
  refuse();
}
}  // namespace hstu::cuda

#endif
