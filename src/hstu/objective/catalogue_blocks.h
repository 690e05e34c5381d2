// The items of a rank's catalogue, block by block, as the vectors of queries are compared with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "hstu/kernels/catalogue_scores.h"
#include "hstu/loss/catalogue_rows.h"
#include "hstu/tensor/context.h"

namespace hstu {

inline constexpr std::int64_t kCatalogueBlock = 8192, kGpuCatalogueBlock = 65536;  // items

// How vectors are compared with the items of a catalogue. Where the context is on a GPU, it scores and
// counts; a score has the bits of the same chain of sums on both, from items whose norms may differ in their
// last bit.
struct CatalogueScores {
  CatalogueRows rows;                         // of this rank
  bool unit = true;                           // items are divided by their norms
  Context context = {};                       // of the blocks that rows.read fills
  std::int64_t block_rows = kCatalogueBlock;  // items that are read at a time; no result depends on it
};

// A rank's catalogue of so many bytes is read once for an evaluation.
inline constexpr std::int64_t kKeptCatalogueBytes = std::int64_t{1} << 30;
// Of a server's, which keeps it rounded too: on a GPU both may take three quarters of what is free now.
std::int64_t kept_by_server(const CatalogueScores& catalogue);
// The bytes of what an evaluation keeps of `items` items.
std::int64_t kept_bytes(std::int64_t items, std::int64_t width, bool on_host);

class CatalogueBlocks {
 public:
  // A catalogue whose V x E floats take at most `kept_bytes` is read once, by the first call of each(); of a
  // larger one the latest block stays. What stays is normalised and, on processors, packed for products,
  // which takes the same bytes once more. The rows must not change.
  explicit CatalogueBlocks(CatalogueScores catalogue, std::int64_t kept_bytes = 0);

  const CatalogueScores& catalogue() const { return catalogue_; }

  // Calls visit(items, number of the first), where the context is, in the order of ids.
  template <typename Visit>
  void each(const Visit& visit) {
    for (std::int64_t first = 0; first < catalogue_.rows.size; first += catalogue_.block_rows)
      visit(block_at(first), first);
  }
  // The same on a GPU, with rows that are also rounded where add_top_block reads that.
  template <typename Visit>
  void each_rounded(const Visit& visit) {
    each([&](const kernels::CatalogueItems& items, std::int64_t first) {
      visit(rounded(items, blocks_[index_of(first)]), first);
    });
  }
  // Calls visit(items) with all of a block in host memory.
  template <typename Visit>
  void each_on_host(const Visit& visit) {
    each([&](kernels::CatalogueItems items, std::int64_t first) {
      const Tensor rows = blocks_[index_of(first)].rows.to_host(catalogue_.context.stream);
      items.rows = rows.data<float>();
      items.ids = catalogue_.rows.ids + first;
      visit(items);
    });
  }

  // The first item with a value that is not finite, of those that were read.
  std::optional<std::int64_t> bad_item() const;

 private:
  struct Block {
    std::int64_t first = -1;
    Tensor rows;                // (n, E) as they are compared
    Tensor packed;              // on processors
    Tensor rounded, most_norm;  // on GPUs, once they were asked for
  };
  std::size_t index_of(std::int64_t first) const {
    return static_cast<std::size_t>(first / catalogue_.block_rows) % blocks_.size();
  }
  kernels::CatalogueItems block_at(std::int64_t first);
  void read(std::int64_t first, Block& block);
  kernels::CatalogueItems rounded(kernels::CatalogueItems items, Block& block) const;

  CatalogueScores catalogue_;
  std::vector<Block> blocks_;  // all that stay
  Tensor first_bad_;           // (1) i64
};

}  // namespace hstu
