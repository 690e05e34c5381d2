// include/hstu/tables.h.
#include "hstu/base/c_interface.h"

#include <cmath>
#include <memory>
#include <string>

#include "hstu/base/choice.h"
#include "hstu/base/error.h"
#include "hstu/tables.h"
#include "hstu/tables/lone_table.h"

struct hstu_table {
  hstu::LoneTable table;
  hstu::OfOneProcess process = {};
};

namespace {

using hstu::Evict;

template <typename Body>
std::int32_t guarded(const Body& body) {
  return hstu::succeeds(body) ? 0 : 1;
}

template <typename T>
T& needed(T* value, const char* name) {
  if (value == nullptr) hstu::fail_usage("tables: {} is NULL", name);
  return *value;
}

hstu::LoneTable& table_of(hstu_table* table) {
  needed(table, "the table").process.check_is_ours("table");
  return table->table;
}

template <typename E, std::size_t n>
E kind_of(const hstu::Choice<E> (&choices)[n], const char* word, const char* name) {
  return hstu::parse_word(choices, &needed(word, name), name);
}

hstu::TableConfig config_of(const hstu_table_options& o) {
  hstu::TableConfig config{.name = &needed(o.name, "name"), .rows = o.rows, .dim = o.dim};
  config.initial = {.kind = kind_of(hstu::kInitialKinds, o.initial, "initial"),
                    .bound = o.bound,
                    .mean = o.mean,
                    .deviation = o.deviation,
                    .value = o.value};
  config.limits = {.capacity = o.capacity,
                   .evict = kind_of(hstu::kEvictions, o.evict, "evict"),
                   .half_life = o.half_life,
                   .admit_after = o.admit_after,
                   .ttl = o.ttl};
  if (config.limits.evict == Evict::custom)
    hstu::fail_usage("tables: evict: custom needs a column of a dataset, which a table alone does not have");
  for (const auto& [name, value] : {std::pair{"capacity", o.capacity},
                                    {"admit_after", o.admit_after},
                                    {"ttl", o.ttl},
                                    {"half_life", o.half_life - 1}}) {
    if (value < 0) hstu::fail_usage("tables: {}: the value is too small", name);
    if (value > std::int64_t{1} << 50) hstu::fail_usage("tables: {}: the value is too large", name);
  }
  for (const auto& [name, value] : {std::pair{"bound", o.bound},
                                    {"mean", o.mean},
                                    {"deviation", o.deviation},
                                    {"value", o.value},
                                    {"weight_decay", o.weight_decay}}) {
    if (!std::isfinite(value)) hstu::fail_usage("tables: {}: expected a number, found {}", name, value);
  }
  if (o.dim > 1 << 24) hstu::fail_usage("tables: dim: expected at most {}, found {}", 1 << 24, o.dim);
  return config;
}

std::span<const std::int64_t> ids_of(const std::int64_t* ids, std::int64_t n) {
  if (n < 0) hstu::fail_usage("tables: expected n >= 0, found {}", n);
  if (n > 0) needed(ids, "ids");
  return {ids, static_cast<std::size_t>(n)};
}

}  // namespace

extern "C" {

std::int32_t hstu_tables_version() {
  return HSTU_TABLES_VERSION;
}

const char* hstu_table_error() {
  return hstu::last_error().c_str();
}

void hstu_table_options_init(hstu_table_options* options) {
  if (options == nullptr) return;
  const hstu::RowOptimizer optimizer;
  const hstu::InitialValue initial;
  const hstu::RowLimits limits;
  *options = {sizeof(hstu_table_options),
              "table",
              0,
              0,
              1,
              "rowwise_adagrad",
              optimizer.epsilon,
              optimizer.beta1,
              optimizer.beta2,
              optimizer.weight_decay,
              "uniform",
              initial.bound,
              initial.mean,
              initial.deviation,
              initial.value,
              limits.capacity,
              "never",
              limits.half_life,
              limits.admit_after,
              limits.ttl};
}

hstu_table* hstu_table_open(const hstu_table_options* options) {
  hstu_table* opened = nullptr;
  guarded([&] {
    const hstu_table_options& o = needed(options, "hstu_table_options");
    if (o.size != sizeof(hstu_table_options))
      hstu::fail_usage(
          "hstu_table_options has {} bytes, this library's has {}: call hstu_table_options_init first, and "
          "compile with this library's hstu/tables.h",
          o.size, sizeof(hstu_table_options));
    const hstu::RowOptimizer optimizer{.kind = kind_of(hstu::kRowOptimizers, o.optimizer, "optimizer"),
                                       .epsilon = o.epsilon,
                                       .beta1 = o.beta1,
                                       .beta2 = o.beta2,
                                       .weight_decay = o.weight_decay};
    opened = new hstu_table{.table = {config_of(o), optimizer, o.seed}};
  });
  return opened;
}

void hstu_table_close(hstu_table* table) {
  if (table != nullptr && table->process.is_ours()) delete table;
}

std::int32_t hstu_table_lookup(hstu_table* table, const std::int64_t* ids, std::int64_t n, float* values) {
  return guarded([&] {
    const auto list = ids_of(ids, n);
    if (n > 0) table_of(table).lookup(list, &needed(values, "values"));
  });
}

std::int32_t hstu_table_update(hstu_table* table, const std::int64_t* ids, std::int64_t n,
                               const float* gradients, double learning_rate, std::int64_t time) {
  return guarded([&] {
    const auto list = ids_of(ids, n);
    if (n > 0) needed(gradients, "gradients");
    table_of(table).update(list, gradients, learning_rate, time);
  });
}

std::int64_t hstu_table_rows(hstu_table* table) {
  if (table == nullptr) return 0;
  std::int64_t rows = -1;
  guarded([&] { rows = table_of(table).rows(); });
  return rows;
}

std::int64_t hstu_table_state_width(hstu_table* table) {
  return table == nullptr ? 0 : table->table.table().state_width();
}

std::int32_t hstu_table_export(hstu_table* table, std::int64_t room, std::int64_t* ids, float* values,
                               float* state, std::int64_t* n) {
  return guarded([&] {
    if (room > 0) needed(ids, "ids"), needed(values, "values");
    needed(n, "n") = table_of(table).read(room, ids, values, state);
  });
}

std::int32_t hstu_table_save(hstu_table* table, const char* folder) {
  return guarded([&] { table_of(table).save(&needed(folder, "folder")); });
}

std::int32_t hstu_table_load(hstu_table* table, const char* folder) {
  return guarded([&] { table_of(table).load(&needed(folder, "folder")); });
}

}  // extern "C"
