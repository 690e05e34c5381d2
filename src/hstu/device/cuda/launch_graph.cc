#include <array>
#include <memory>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda_calls.h"

namespace hstu::cuda {
namespace {

dim3 dim3_of(const std::array<unsigned, 3>& size) {
  return {size[0], size[1], size[2]};
}

// From compute capability 9.0 on, a launch may begin before the one before it has ended, and blocks form
// clusters.
bool has_overlaps_and_clusters(const char* what) {
  thread_local int known = -1;  // the GPU of the last answer: small kernels ask for each launch
  thread_local bool has = false;
  int device = 0;
  check_cuda(cudaGetDevice(&device), what);
  if (device != known) {
    has = current_device_attribute(cudaDevAttrComputeCapabilityMajor, what) >= 9;
    known = device;
  }
  return has;
}

}  // namespace

struct LaunchGraph {
  LaunchGraph() = default;
  ~LaunchGraph() {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  cudaGraph_t graph = nullptr;
  std::vector<cudaGraphNode_t> nodes;  // of the launches, in their order
  cudaGraphExec_t executable = nullptr;
};

void put_on_stream(const LaunchShape& launch, void* const* arguments, CUstream_st* stream) {
  std::array<cudaLaunchAttribute, 2> attributes{};
  unsigned count = 0;
  if (has_overlaps_and_clusters(launch.what)) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {launch.cluster, 1, 1};
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3_of(launch.blocks);
  config.blockDim = dim3_of(launch.threads);
  config.dynamicSmemBytes = launch.shared_bytes;
  config.stream = stream;
  config.attrs = attributes.data();
  config.numAttrs = count;
  check_cuda(cudaLaunchKernelExC(&config, launch.kernel, const_cast<void**>(arguments)), launch.what);
}

namespace {

constexpr const char* kMaking = "making a graph of launches";

// A node that depends on `before`: on the end of one launch no more than a launch on a stream does, which
// may begin earlier, otherwise on that of all.
cudaGraphNode_t add_node(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& before, bool may_overlap,
                         const LaunchShape& launch, std::vector<void*> arguments) {
  cudaGraphEdgeData edge{};
  if (may_overlap) {
    edge.from_port = cudaGraphKernelNodePortProgrammatic;
    edge.type = cudaGraphDependencyTypeProgrammatic;
  }
  const std::vector<cudaGraphEdgeData> edges(before.size(), edge);
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeKernel;
  params.kernel.func = const_cast<void*>(launch.kernel);
  params.kernel.gridDim = dim3_of(launch.blocks);
  params.kernel.blockDim = dim3_of(launch.threads);
  params.kernel.sharedMemBytes = launch.shared_bytes;
  params.kernel.kernelParams = arguments.data();
  cudaGraphNode_t node = nullptr;
  check_cuda(cudaGraphAddNode(&node, graph, before.data(), edges.data(), before.size(), &params),
             launch.what);
  if (launch.cluster > 1 && has_overlaps_and_clusters(launch.what)) {
    cudaLaunchAttributeValue value{};
    value.clusterDim = {launch.cluster, 1, 1};
    check_cuda(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value),
               launch.what);
  }
  return node;
}

}  // namespace

std::shared_ptr<LaunchGraph> make_graph(const LaunchList& launches) {
  auto made = std::make_shared<LaunchGraph>();
  check_cuda(cudaGraphCreate(&made->graph, 0), kMaking);
  std::vector<cudaGraphNode_t> before, last;  // what the launch before depends on; what the next one does
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const LaunchShape& launch = launches.shape(i);
    const bool beside = launch.beside && i > 0;
    if (!beside) before = std::exchange(last, {});
    const bool may_overlap = !beside && before.size() == 1 && has_overlaps_and_clusters(launch.what);
    made->nodes.push_back(add_node(made->graph, before, may_overlap, launch, launches.arguments(i)));
    last.push_back(made->nodes.back());
  }
  check_cuda(cudaGraphInstantiate(&made->executable, made->graph, 0), kMaking);
  return made;
}

void change_launch(LaunchGraph& graph, std::size_t i, const LaunchList& launches) {
  const LaunchShape& launch = launches.shape(i);
  std::vector<void*> arguments = launches.arguments(i);
  cudaKernelNodeParams params{};
  params.func = const_cast<void*>(launch.kernel);
  params.gridDim = dim3_of(launch.blocks);
  params.blockDim = dim3_of(launch.threads);
  params.sharedMemBytes = launch.shared_bytes;
  params.kernelParams = arguments.data();
  check_cuda(cudaGraphExecKernelNodeSetParams(graph.executable, graph.nodes[i], &params), launch.what);
}

void launch(LaunchGraph& graph, CUstream_st* stream) {
  check_cuda(cudaGraphLaunch(graph.executable, stream), "launching a graph");
}

}  // namespace hstu::cuda
