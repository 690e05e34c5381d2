// A heat map of a sweep: one grid a direction, a cell for each batch size and length, coloured by TFLOP/s.
#pragma once

#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/benchmark/attention_sweep.h"

namespace hstu {

// One SVG document that needs nothing else and follows the viewer's light or dark scheme. Rows and columns
// are the samples and lengths that occur, in their order; a cell that was left out shows no number and says
// why when the pointer rests on it. A cell's TFLOP/s are those of its burst; below them is their share of
// `peak` (FLOP/s), or the time if it is 0.
std::string attention_heatmap_svg(const std::string& title, const std::string& subtitle,
                                  const std::vector<AttentionSweepCell>& cells, double peak = 0);

struct AttentionHeatmap {
  AttentionSweep sweep;
  std::string type, mask, device;  // of sweep.shape, in words; no device: that of this machine
  Path picture, figures;           // the .svg file and a .json file
};

// Times the sweep on the first GPU, names each cell on the terminal and writes both files. Throws Error where
// there is no GPU or a file cannot be written, before anything is timed.
void draw_attention_heatmap(const AttentionHeatmap& map);

}  // namespace hstu
