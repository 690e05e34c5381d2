#include "hstu/embedding/table_spec.h"

#include <string_view>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/rows/tiered_row_store.h"

namespace hstu {
namespace {

void check_config(const TableConfig& config, const RowOptimizer& optimizer) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  if (config.name.empty() || config.name.front() == '.' ||
      config.name.find_first_not_of(kAllowed) != std::string::npos) {
    fail_usage("embedding table \"{}\": expected a name of letters, digits, '_', '-' and '.'", config.name);
  }
  if (config.rows < 1)
    fail_usage("embedding table \"{}\": expected rows >= 1, found {}", config.name, config.rows);
  if (config.dim < 1)
    fail_usage("embedding table \"{}\": expected dim >= 1, found {}", config.name, config.dim);
  const auto rate = [](double x) { return x >= 0.0 && x < 1.0; };
  if (!(optimizer.epsilon > 0.0) || !rate(optimizer.beta1) || !rate(optimizer.beta2)) {
    fail_usage("optimizer of embedding tables: expected epsilon > 0 and betas in [0, 1), found {}, {} and {}",
               optimizer.epsilon, optimizer.beta1, optimizer.beta2);
  }
}

Tiers tiers_of(const TableConfig& config, const RowShape& shape, Device device) {
  const CacheSize grows{.lines = grown_lines(shape, 0), .grows = true}, fixed{.lines = config.cache_rows};
  if (config.place == TableTier::disk) {
    if (device.is_host() && config.cache_rows == 0)
      return {.cache = {.lines = config.host_rows}, .disk_folder = config.disk_folder};
    return {.cache = config.cache_rows > 0 ? fixed : grows,
            .disk_folder = config.disk_folder,
            .host_rows = config.host_rows};
  }
  if (config.cache_rows > 0) return {.cache = fixed};
  if (config.place == TableTier::host) return {.cache = grows};
  return {};
}

}  // namespace

TableSpec table_spec(const TableConfig& config, RowOptimizer optimizer, std::uint64_t seed, Device device,
                     const RowOwners& owners) {
  check_config(config, optimizer);
  if (config.optimizer) optimizer.kind = *config.optimizer;
  optimizer.rate = config.rate;
  const std::int64_t width = owners.columns(owners.rank, config.dim);
  const RowShape shape{.rows = config.rows,
                       .dim = width,
                       .state_width = optimizer.state_width(width),
                       .key = derive_key(seed, "table:" + config.name),
                       .bound = initial_bound(config.initial, config.rows, config.dim),
                       .initial = config.initial,
                       .first_column = owners.first_column(owners.rank, config.dim),
                       .dtype = config.dtype};
  PlacedTable placed{.name = config.name,
                     .shape = shape,
                     .optimizer = optimizer,
                     .lookups_create = config.limits.admit_after == 0,
                     .tiers = tiers_of(config, shape, device)};
  if (config.limits.any()) placed.directory = std::make_shared<RowDirectory>(config.rows);
  return {config, optimizer, owners, std::move(placed)};
}

PlacementKind placement_of(const TableConfig& config, Device device) {
  if (config.place == TableTier::disk || config.cache_rows > 0) return PlacementKind::tiered;
  if (device.is_host()) return PlacementKind::host;
  return config.place == TableTier::host || config.limits.any() ? PlacementKind::tiered
                                                                : PlacementKind::device;
}

std::shared_ptr<Placement> make_placement(PlacementKind kind, std::span<const PlacedTable> tables,
                                          const Context& where) {
  if (kind == PlacementKind::host) return host_rows(tables);
  return kind == PlacementKind::tiered ? tiered_rows(tables, where) : cuda::device_rows(tables, where);
}

}  // namespace hstu
