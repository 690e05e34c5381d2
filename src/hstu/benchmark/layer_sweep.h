// A layer over lengths and by what it chooses, as NVIDIA's layer benchmark (recsys-examples): one chart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/json.h"
#include "hstu/benchmark/layer_benchmark.h"

namespace hstu {

struct LayerSweep {
  LayerBenchmarkOptions layer;  // of every point but for tokens, attention and recomputation
  std::vector<std::int64_t> lengths{1024, 2048, 4096, 8192};
  Path picture;  // an .svg file; the figures are written to a .json file beside it
};

// {"layer": of one point, "points": [{"variant", "tokens", "tflops": of a burst, "share_of_peak", "peak_gib",
// "left_out": why, in place of the figures}]}. On the host the variants that choose kernels are left out.
Json sweep_layer(const LayerSweep& sweep);

// TFLOP/s of each point, and those that were published, as outlines with their hardware.
std::string layer_sweep_svg(const Json& result);

// Sweeps and writes both files; names each point on the terminal. Throws Error before anything is timed where
// a file cannot be written, and UsageError if the picture is no .svg file.
void draw_layer_sweep(const LayerSweep& sweep);

}  // namespace hstu
