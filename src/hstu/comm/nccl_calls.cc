#include "hstu/comm/nccl_calls.h"

#include <dlfcn.h>

#include "hstu/base/error.h"

namespace hstu::nccl {
namespace {

constexpr const char* kLibrary = "libnccl.so.2";

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) fail_usage("{} has no {}: install NCCL 2.7 or newer", kLibrary, name);
}

Calls load() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail_usage(
        "ranks on GPUs need NCCL, and {} cannot be loaded: {}. Install libnccl2, put its folder into "
        "LD_LIBRARY_PATH, or use ranks.gpu_messages = \"host\", which is slow",
        kLibrary, ::dlerror());
  }
  Calls calls{};
  find(library, "ncclGetVersion", calls.get_version);
  find(library, "ncclGetUniqueId", calls.get_unique_id);
  find(library, "ncclCommInitRank", calls.init_rank);
  find(library, "ncclCommDestroy", calls.destroy);
  find(library, "ncclCommAbort", calls.abort);
  find(library, "ncclSend", calls.send);
  find(library, "ncclRecv", calls.receive);
  find(library, "ncclGroupStart", calls.group_start);
  find(library, "ncclGroupEnd", calls.group_end);
  find(library, "ncclGetErrorString", calls.error_string);
  const Result result = calls.get_version(&calls.version);
  if (result != 0 || calls.version < kOldest)
    fail_usage("{} is version {}: install NCCL 2.7 or newer", kLibrary, calls.version);
  return calls;
}

}  // namespace

const Calls& calls() {
  static const Calls loaded = load();
  return loaded;
}

}  // namespace hstu::nccl
