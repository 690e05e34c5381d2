#include "hstu/device/launch_recording.h"

#include "hstu/base/error.h"
#include "hstu/device/cuda_calls.h"

namespace hstu {
namespace {

thread_local const CUstream_st* recorded_stream = nullptr;
thread_local LaunchList* recorded = nullptr;

class Recorded {
 public:
  Recorded(const CUstream_st* stream, LaunchList& list) {
    require(recorded == nullptr, "this thread records the launches of a stream already");
    recorded_stream = stream, recorded = &list;
  }
  ~Recorded() { recorded_stream = nullptr, recorded = nullptr; }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
};

}  // namespace

LaunchList* LaunchRecording::that_records(const CUstream_st* stream) {
  return recorded != nullptr && recorded_stream == stream ? recorded : nullptr;
}

LaunchRecording::LaunchRecording(const Stream& stream, const std::function<void()>& work) : stream_(stream) {
  require(!stream.device().is_host(), "launches are recorded on GPUs alone");
  LaunchList list;
  {
    const Recorded recording(stream.cuda(), list);
    work();
  }
  if (list.size() > 0) graph_ = cuda::make_graph(list);
}

void LaunchRecording::replay() const {
  if (graph_ != nullptr) cuda::launch(*graph_, stream_.cuda());
}

}  // namespace hstu
