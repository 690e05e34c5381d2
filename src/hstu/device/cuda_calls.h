// What this folder needs of CUDA, one function a need. cuda/ implements them; in a build without CUDA,
// without_cuda.cc refuses them with an Error. `device` is the number of a GPU. All throw Error when a call
// fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace hstu {

class MemoryPool;
class Stream;

namespace cuda {

int device_count();  // 0 without CUDA
std::string bus_address(int device);
void make_current(int device);

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

// What is put on the stream from begin_capture() on becomes a graph at end_capture(), and is not done before
// the graph is launched.
void begin_capture(CUstream_st* stream);
std::shared_ptr<CUgraph_st> end_capture(CUstream_st* stream);
void drop_capture(CUstream_st* stream) noexcept;
// A letter for each node of a graph, in the order of the calls that made them.
std::string kinds_of_nodes(CUgraph_st* graph);
std::shared_ptr<CUgraphExec_st> make_executable(CUgraph_st* graph);
// The executable becomes that of `graph`, whatever work it still has; false if the graphs differ in more than
// what their nodes do.
bool update(CUgraphExec_st* executable, CUgraph_st* graph);
void launch(CUgraphExec_st* executable, CUstream_st* stream);

std::shared_ptr<MemoryPool> new_pool(const Stream& stream, std::int64_t limit);

void* allocate_pinned(std::size_t bytes);
void free_pinned(void* memory) noexcept;
// Locks memory of the process in place, which must end after unpin().
void pin(void* memory, std::size_t bytes);
void unpin(void* memory) noexcept;

}  // namespace cuda
}  // namespace hstu
