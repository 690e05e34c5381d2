// LaunchGroups: the launches of operations on a GPU's stream, kept back and handed to the driver several at a
// time, as CUDA graphs. A launch alone takes the host 4.5 us, in a group 2 us and its capture: small models
// are bound by that. The GPU does the same work in the same order.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

struct CUstream_st;
struct CUgraphExec_st;

namespace hstu {

// Of one stream (Stream::operation, Stream::hand_over), which one thread uses meanwhile.
class LaunchGroups {
 public:
  explicit LaunchGroups(CUstream_st* stream) : stream_(stream) {}
  ~LaunchGroups() { discard(); }
  LaunchGroups(const LaunchGroups&) = delete;
  LaunchGroups& operator=(const LaunchGroups&) = delete;

  // Between begin() and end(), or discard() after an error, operations are kept.
  void begin();
  void end();
  void discard() noexcept;

  void before_operation() {
    if (keeps_) open();
  }
  void after_operation() {
    if (is_open_ && ++operations_ == kOperations) hand_over();
  }
  // The stream gets what is kept. After an error end() throws too, as work is missing.
  void hand_over();

 private:
  // Few, so that the GPU begins early; the work of the group before hides the host's for this one.
  static constexpr int kOperations = 16;

  void open();

  CUstream_st* stream_;
  bool keeps_ = false, is_open_ = false;
  bool is_lost_ = false;   // work that a hand_over() did not put on the stream
  int operations_ = 0;     // in the open group
  std::size_t group_ = 0;  // since begin()
  // By number since begin() and kinds of nodes: the executable graph of a group that had both, which takes
  // the arguments of the next one. Steps repeat the same operations, so few are made.
  std::map<std::pair<std::size_t, std::string>, std::shared_ptr<CUgraphExec_st>> executables_;
};

}  // namespace hstu
