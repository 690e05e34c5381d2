// LaunchGraphs: puts lists of launches on a GPU's stream, as CUDA graphs of which only what differs from an
// earlier step is changed. A launch alone takes the host several times as long: small models are bound by
// that.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "hstu/device/launch_list.h"

struct CUstream_st;

namespace hstu {

namespace cuda {
struct LaunchGraph;
}

class LaunchGraphs {
 public:
  explicit LaunchGraphs(CUstream_st* stream) : stream_(stream) {}

  // A step begins, which repeats the lists of earlier ones in their order.
  void begin();
  // The launches of the list and then its events. Its content is undefined afterwards. After an error a graph
  // may not be what its list says: clear().
  void put(LaunchList& launches);
  void clear();

 private:
  // A list of an earlier step. Its graph takes the sizes and arguments of a later one with the same kernels:
  // steps repeat the same kernels, so few graphs are made, and launches that have not changed cost nothing.
  struct Group {
    std::shared_ptr<cuda::LaunchGraph> graph;
    LaunchList launches;
  };
  Group& group_of(const LaunchList& launches);

  CUstream_st* stream_;
  std::size_t lists_ = 0;                   // since begin()
  std::vector<std::vector<Group>> groups_;  // by number since begin()
  std::size_t graphs_ = 0;                  // in groups_
};

}  // namespace hstu
