// The keys of [tables] and [tables.NAME].
#include "hstu/options/options.h"
#include "hstu/options/table_options.h"

namespace hstu {
namespace {

struct AdmitKeys {
  std::int64_t& after;
};

void describe(ConfigFields& f, AdmitKeys& o) {
  f.field("after", o.after, "occurrences of an id in training before it gets a row; 0: at once",
          rule::between(0, 1e9));
}

}  // namespace

void describe(ConfigFields& f, InitialValue& o) {
  f.choice("kind", o.kind, kInitialKinds, "the distribution of a new row's values");
  f.field("bound", o.bound, "uniform: from -bound to bound; 0: 1 / sqrt(rows)", rule::at_least(0));
  f.field("mean", o.mean, "normal, truncated_normal");
  f.field("deviation", o.deviation, "normal; truncated_normal, which ends at two deviations",
          rule::at_least(0));
  f.field("value", o.value, "constant");
  const bool is_normal = o.kind == InitialKind::normal || o.kind == InitialKind::truncated_normal;
  f.read_if(o.kind == InitialKind::uniform, "bound", "with kind = \"uniform\"");
  for (const char* const key : {"mean", "deviation"})
    f.read_if(is_normal, key, "with kind = \"normal\" or \"truncated_normal\"");
  f.read_if(o.kind == InitialKind::constant, "value", "with kind = \"constant\"");
}

void describe(ConfigFields& f, TableSection& o) {
  f.field("capacity", o.capacity,
          "rows of all ranks after a step, at most: 1000000, \"200M\"; \"\": no limit",
          rule::or_integer(rule::parsed_by(check_rows)));
  f.field("memory", o.memory, "in place of capacity: as many rows as take \"48GiB\"; \"\": no limit",
          rule::or_integer(rule::parsed_by(check_bytes)));
  f.field("place", o.place,
          "of the rows and their optimizer's state: " + list_of(kTableTiers) + "; \"\": tables.place",
          rule::parsed_by(check_place));
  f.field("device_memory", o.device_memory,
          "place = \"cache\": its size in the training device's memory, \"8GiB\"; place = \"disk\": that of "
          "a cache "
          "above the host's; \"\": on a GPU it has the rows of a step",
          rule::or_integer(rule::parsed_by(check_bytes)));
  f.field("host_memory", o.host_memory, "place = \"disk\": the size of its cache in host memory, \"16GiB\"",
          rule::or_integer(rule::parsed_by(check_bytes)));
  f.choice("evict", o.evict, kEvictions, "which rows leave a table that is full (docs/tables.md)");
  f.field("score", o.score,
          "custom: a context column of the dataset; rows whose samples had the smallest values leave");
  f.field("half_life", o.half_life, "lru+lfu: steps after which an occurrence counts half",
          rule::between(1, 1e9));
  AdmitKeys admit{o.admit_after};
  f.section("admit", admit, "which ids get a row");
  f.field("ttl", o.ttl, "rows not seen for so long in event time leave: \"12h\", \"30d\"; \"\": they remain",
          rule::or_integer(rule::parsed_by(check_duration)));
  f.field("width", o.width,
          "values of a row; where they are more or fewer than model.embedding_dim, a learned matrix leads to "
          "that; 0: model.embedding_dim",
          rule::between(0, 65536));
  f.choice("dtype", o.dtype, kRowTypes,
           "of the rows' values; bf16: updates are rounded up or down at random, so that small ones add up");
  f.field("optimizer", o.optimizer, list_of(kRowOptimizers) + "; \"\": sparse_optimizer.kind",
          rule::parsed_by(check_row_optimizer));
  f.choice(
      "updates", o.updates, kUpdatedRows,
      "the rows that a step updates: those with a gradient, or all, which momentum and weight decay move "
      "too, as if the table was a weight; all is for the table that a loss reads as a whole");
  f.field("rate_factor", o.rate_factor, "multiplies the learning rate of [sparse_optimizer] for this table",
          rule::between(0, 1e6));
  f.field("frozen", o.frozen, "rows keep the values with which they begin, as those of a warm start");
  f.field("ranks", o.ranks, list_of(kTableRanks) + "; \"\": tables.ranks",
          rule::parsed_by(check_table_ranks));
  f.section("initial", o.initial, "the value of a new row");
  f.read_if(o.evict == Evict::lru_lfu, "half_life", "with evict = \"lru+lfu\"");
}

void describe(ConfigFields& f, TablesSection& o) {
  f.choice(
      "ranks", o.ranks, kTableRanks,
      "how several ranks share a table: each row on one of them (split), some columns of all rows on each "
      "(column), all rows on one (table), all rows on each (copy); auto: copy where it is small, else split");
  f.choice("wire_rows", o.wire_rows, kWireTypes,
           "tables on GPUs: the type in which rows travel to the ranks that read them");
  f.choice("wire_gradients", o.wire_gradients, kWireTypes,
           "tables on GPUs: the type in which gradients travel to the ranks that have the rows");
  f.choice(
      "place", o.place, kTableTiers,
      "of the rows and their optimizer's state: in the memory of the training device; on the host behind "
      "a cache in that memory (tables.NAME.device_memory); on the host behind a cache "
      "for the rows of a step; on a disk behind a cache on the host (tables.NAME.host_memory); or auto, the "
      "first of "
      "device, cache and host that fits");
  f.field("disk_folder", o.disk_folder,
          "place = \"disk\": where files of rows are while hstu runs, in folders that it makes and removes");
  f.named_sections(o.by_name, "NAME", "the table of one feature: item, an attribute, a contextual feature");
}

}  // namespace hstu
