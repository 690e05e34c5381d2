// Takes the place of cuda/ in a build without CUDA.
#ifndef HSTU_WITH_CUDA

#include "hstu/base/error.h"
#include "hstu/device/cuda_calls.h"

namespace hstu::cuda {
namespace {

[[noreturn]] void refuse() {
  fail(
      "this hstu was built without CUDA: ./dev build --preset cuda builds one with it (needs nvcc of CUDA "
      "13), or use the host");
}

}  // namespace

int device_count() {
  return 0;
}
std::string bus_address(int) {
  refuse();
}
void make_current(int) {
  refuse();
}
void start_profilers() {}
void stop_profilers() {}
void memory(int, std::int64_t&, std::int64_t&) {
  refuse();
}
std::shared_ptr<CUstream_st> new_stream(int) {
  refuse();
}
void synchronize(CUstream_st*) {
  refuse();
}
void wait(CUstream_st*, CUevent_st*) {
  refuse();
}
std::shared_ptr<CUevent_st> new_event(int, bool) {
  refuse();
}
void record(CUevent_st*, CUstream_st*) {
  refuse();
}
bool reached(CUevent_st*) {
  refuse();
}
void synchronize(CUevent_st*) {
  refuse();
}
double milliseconds(CUevent_st*, CUevent_st*) {
  refuse();
}
void copy(void*, const void*, std::size_t, CUstream_st*) {
  refuse();
}
void set_zero(void*, std::size_t, CUstream_st*) {
  refuse();
}
void put_on_stream(const LaunchShape&, void* const*, CUstream_st*) {
  refuse();
}
std::shared_ptr<LaunchGraph> make_graph(const LaunchList&) {
  refuse();
}
void change_launch(LaunchGraph&, std::size_t, const LaunchList&) {
  refuse();
}
void launch(LaunchGraph&, CUstream_st*) {
  refuse();
}
std::shared_ptr<MemoryPool> new_pool(const Stream&, std::int64_t) {
  refuse();
}
void* allocate_pinned(std::size_t) {
  refuse();
}
void free_pinned(void*) noexcept {}
void pin(void*, std::size_t) {
  refuse();
}
void unpin(void*) noexcept {}

}  // namespace hstu::cuda

#endif
