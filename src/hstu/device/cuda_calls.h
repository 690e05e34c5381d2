// What this folder needs of CUDA, one function a need. cuda/ implements them; in a build without CUDA,
// without_cuda.cc refuses them with an Error. `device` is the number of a GPU. All throw Error when a call
// fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "hstu/device/launch_list.h"

struct CUstream_st;
struct CUevent_st;

namespace hstu {

class MemoryPool;
class Stream;

namespace cuda {

struct LaunchGraph;

int device_count();  // 0 without CUDA
std::string bus_address(int device);
void make_current(int device);
void memory(int device, std::int64_t& total, std::int64_t& free);  // bytes

std::shared_ptr<CUstream_st> new_stream(int device);
void synchronize(CUstream_st* stream);
void wait(CUstream_st* stream, CUevent_st* event);

std::shared_ptr<CUevent_st> new_event(int device, bool timed);
void record(CUevent_st* event, CUstream_st* stream);
bool reached(CUevent_st* event);
void synchronize(CUevent_st* event);
double milliseconds(CUevent_st* from, CUevent_st* to);

// Both are put on the stream; either side of a copy may be on the host.
void copy(void* to, const void* from, std::size_t bytes, CUstream_st* stream);
void set_zero(void* to, std::size_t bytes, CUstream_st* stream);

// Puts a launch on the stream, with pointers to its arguments.
void put_on_stream(const LaunchShape& launch, void* const* arguments, CUstream_st* stream);
// The launches of a list, which follow each other as on a stream.
std::shared_ptr<LaunchGraph> make_graph(const LaunchList& launches);
// Launch i of the graph becomes that of the list, which has the same kernels.
void change_launch(LaunchGraph& graph, std::size_t i, const LaunchList& launches);
void launch(LaunchGraph& graph, CUstream_st* stream);

std::shared_ptr<MemoryPool> new_pool(const Stream& stream, std::int64_t limit);

// For a profiler that is attached and waits for them. Throw nothing.
void start_profilers();
void stop_profilers();

void* allocate_pinned(std::size_t bytes);
void free_pinned(void* memory) noexcept;
// Locks memory of the process in place, which must end after unpin().
void pin(void* memory, std::size_t bytes);
void unpin(void* memory) noexcept;

}  // namespace cuda
}  // namespace hstu
