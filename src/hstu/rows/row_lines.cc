#include "hstu/rows/row_lines.h"

#include <algorithm>

#include "hstu/base/threads.h"
#include "hstu/rows/row_storage.h"

namespace hstu {
namespace {

constexpr std::size_t kRowsAtATime = 1 << 14;

// copy(i, row) for each of the lines [first, first + rows).
template <typename Copy>
void copy_rows(std::size_t first, std::size_t n, std::int64_t width, float* rows, const Copy& copy) {
  parallel_blocks(static_cast<std::int64_t>(n), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) copy(static_cast<std::int64_t>(first) + i, rows + i * width);
  });
}

}  // namespace

void read_parts(const RowLines& rows, const RowShape& shape, std::span<const std::int64_t> lines,
                TransferBlocks& blocks, float* values, float* state) {
  const std::int64_t dim = shape.dim, states = shape.state_width;
  for (std::size_t first = 0; first < lines.size(); first += kRowsAtATime) {
    const auto some = lines.subspan(first, std::min(kRowsAtATime, lines.size() - first));
    auto* const block = blocks.next<float>(static_cast<std::int64_t>(some.size()) * (dim + states));
    rows.read(some, block);
    blocks.in_use().synchronize();
    copy_rows(first, some.size(), dim + states, block, [&](std::int64_t i, const float* row) {
      if (values != nullptr) std::copy_n(row, dim, values + i * dim);
      if (state != nullptr) std::copy_n(row + dim, states, state + i * states);
    });
  }
}

void write_parts(RowLines& rows, const RowShape& shape, std::span<const std::int64_t> lines,
                 TransferBlocks& blocks, const float* values, const float* state) {
  const std::int64_t dim = shape.dim, states = shape.state_width;
  for (std::size_t first = 0; first < lines.size(); first += kRowsAtATime) {
    const auto some = lines.subspan(first, std::min(kRowsAtATime, lines.size() - first));
    auto* const block = blocks.next<float>(static_cast<std::int64_t>(some.size()) * (dim + states));
    copy_rows(first, some.size(), dim + states, block, [&](std::int64_t i, float* row) {
      std::copy_n(values + i * dim, dim, row);
      if (states > 0) std::copy_n(state + i * states, states, row + dim);
    });
    rows.write(some, block);
    blocks.in_use();
  }
}

}  // namespace hstu
