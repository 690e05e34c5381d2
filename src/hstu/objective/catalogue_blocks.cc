#include "hstu/objective/catalogue_blocks.h"

#include <limits>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/device/machine.h"
#include "hstu/kernels/l2_normalise.h"
#include "hstu/objective/on_device.h"

namespace hstu {
namespace {

constexpr float kShortestItem = 1e-6F;  // an item's norm is at least this
constexpr std::int64_t kNoItem = std::numeric_limits<std::int64_t>::max();

bool is_kept(std::int64_t items, std::int64_t width, std::int64_t most) {
  return items * width * std::int64_t{sizeof(float)} <= most;
}

}  // namespace

std::int64_t kept_bytes(std::int64_t items, std::int64_t width, bool on_host) {
  const std::int64_t of = is_kept(items, width, kKeptCatalogueBytes)
                              ? items
                              : std::min(items, on_host ? kCatalogueBlock : kGpuCatalogueBlock);
  return (of * width + (on_host ? kernels::packed_items_size(of, width) : 0)) * std::int64_t{sizeof(float)};
}

std::int64_t kept_by_server(const CatalogueScores& catalogue) {
  const Device device = catalogue.context.device();
  if (device.is_host()) return kKeptCatalogueBytes;
  const std::int64_t row = catalogue.rows.width * std::int64_t{sizeof(float)};
  std::int64_t rounded = 0;
  if constexpr (kBuiltWithCuda)
    rounded = kernels::rounded_width(catalogue.rows.width, catalogue.context.cuda()) *
              std::int64_t{sizeof(BFloat16)};
  return std::max(kKeptCatalogueBytes, memory_of(device).free / 4 * 3 / (row + rounded) * row);
}

CatalogueBlocks::CatalogueBlocks(CatalogueScores catalogue, std::int64_t kept_bytes)
    : catalogue_(std::move(catalogue)), first_bad_(on_device(std::vector{kNoItem}, catalogue_.context)) {
  const CatalogueRows& rows = catalogue_.rows;
  require(rows.width >= 1 && catalogue_.block_rows >= 1, "expected items of at least 1 number");
  const std::int64_t blocks = (rows.size + catalogue_.block_rows - 1) / catalogue_.block_rows;
  const bool keeps = is_kept(rows.size, rows.width, kept_bytes);
  blocks_.resize(static_cast<std::size_t>(keeps ? blocks : std::min<std::int64_t>(blocks, 1)));
}

kernels::CatalogueItems CatalogueBlocks::block_at(std::int64_t first) {
  Block& block = blocks_[index_of(first)];
  if (block.first != first) read(first, block);
  const bool on_host = catalogue_.context.device().is_host();
  const CatalogueRows& rows = catalogue_.rows;
  return {.n = block.rows.rows(),
          .width = rows.width,
          .rows = block.rows.data<float>(),
          .ids = first + (on_host ? rows.ids : rows.device_ids.data<std::int64_t>()),
          .packed = on_host ? block.packed.data<float>() : nullptr};
}

void CatalogueBlocks::read(std::int64_t first, Block& block) {
  const Context& context = catalogue_.context;
  const std::int64_t width = catalogue_.rows.width,
                     n = std::min(catalogue_.block_rows, catalogue_.rows.size - first);
  block = {};
  Tensor rows = Tensor::empty({n, width}, DType::f32, context),
         unit = Tensor::empty({n, width}, DType::f32, context),
         norm = Tensor::empty({n}, DType::f32, context);
  catalogue_.rows.read(first, rows);
  with_stream(context, [&](auto stream) {
    kernels::l2_normalise(kernels::L2Normalise<float>{.rows = n,
                                                      .width = width,
                                                      .epsilon = kShortestItem,
                                                      .x = rows.data<float>(),
                                                      .y = unit.mutable_data<float>(),
                                                      .norm = norm.mutable_data<float>()},
                          stream);
    kernels::find_not_finite({.n = n,
                              .first = first,
                              .norms = norm.data<float>(),
                              .first_bad = first_bad_.mutable_data<std::int64_t>()},
                             stream);
  });
  block.first = first;
  block.rows = std::move(catalogue_.unit ? unit : rows);
  if (!context.device().is_host()) return;
  block.packed = Tensor::empty({kernels::packed_items_size(n, width)}, DType::f32, context);
  kernels::pack_items({.n = n, .width = width, .rows = block.rows.data<float>()},
                      block.packed.mutable_data<float>());
}

kernels::CatalogueItems CatalogueBlocks::rounded(kernels::CatalogueItems items, Block& block) const {
  if constexpr (kBuiltWithCuda) {
    const Context& context = catalogue_.context;
    const std::int64_t padded = kernels::rounded_width(items.width, context.cuda());
    if (padded == 0) return items;
    if (!block.rounded.defined()) {
      block.rounded = Tensor::empty({items.n, padded}, DType::bf16, context);
      block.most_norm = Tensor::empty({1}, DType::f32, context);
      kernels::round_items(items, block.rounded.mutable_data<BFloat16>(),
                           block.most_norm.mutable_data<float>(), context.cuda());
    }
    items.rounded = block.rounded.data<BFloat16>();
    items.most_norm = block.most_norm.data<float>();
  }
  return items;
}

std::optional<std::int64_t> CatalogueBlocks::bad_item() const {
  const Tensor first = first_bad_.to_host(catalogue_.context.stream);
  const std::int64_t at = first.data<std::int64_t>()[0];
  return at == kNoItem ? std::nullopt : std::optional(catalogue_.rows.ids[at]);
}

}  // namespace hstu
