// LaunchRecording: launches of kernels that are recorded once and replayed as a CUDA graph, whose replay
// costs the host one call. The memory that the launches use must be the same at each replay (keeping_pool.h).
#pragma once

#include <functional>
#include <memory>

#include "hstu/device/launch_list.h"
#include "hstu/device/stream.h"

namespace hstu {

namespace cuda {
struct LaunchGraph;
}

class LaunchRecording {
 public:
  // Calls work(), whose launches on the stream of a GPU are recorded and not put on it. Throws InternalError
  // where work() puts anything else on the stream.
  LaunchRecording(const Stream& stream, const std::function<void()>& work);

  // Puts all of it on the stream.
  void replay() const;

  // The launches that this thread records on the stream; null: none.
  static LaunchList* that_records(const CUstream_st* stream);

 private:
  Stream stream_;
  std::shared_ptr<cuda::LaunchGraph> graph_;  // null: no launches
};

}  // namespace hstu
