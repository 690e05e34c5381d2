/* Embedding tables of hstu for programs in any language: rows by 64-bit ids that exist from their first
 * update on, with the state of their optimizer, and limits by which they leave. The rows are in host memory.
 * docs/tables.md has what lookups and limits mean; the numbers are those of training with the same seed, name
 * and settings.
 *
 * All functions may be called from several threads at once; those of one table wait for each other. Functions
 * that return int32_t return 0, or 1 with the text in hstu_table_error(). In a process that was forked, they
 * fail for a table that its parent opened, and hstu_table_close does nothing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HSTU_TABLES_API __attribute__((visibility("default")))
#else
#define HSTU_TABLES_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every change of this header that an older program would not survive. */
#define HSTU_TABLES_VERSION 1

typedef struct hstu_table hstu_table;

/* Call hstu_table_options_init first: it writes the defaults, which the comments give in brackets. */
typedef struct {
  size_t size;            /* [sizeof(hstu_table_options)] which header the caller uses */
  const char* name;       /* ["table"] letters, digits, '_', '-' and '.' */
  int64_t rows;           /* [0] V: ids are 0 to V - 1; others read zeros and take no gradient. Needed */
  int64_t dim;            /* [0] D, values of a row. Needed */
  uint64_t seed;          /* [1] of initial values, which depend on it, the name, the id and the column */
  const char* optimizer;  /* ["rowwise_adagrad"] or "sgd", "adagrad", "adam", "adamw" */
  double epsilon;         /* [1e-8] */
  double beta1, beta2;    /* [0.9, 0.999] adam, adamw */
  double weight_decay;    /* [0.01] adamw */
  const char* initial;    /* ["uniform"] or "normal", "truncated_normal", "xavier", "constant" */
  double bound;           /* [0: 1 / sqrt(V)] uniform on [-bound, bound) */
  double mean, deviation; /* [0, 0.01] normal, truncated_normal */
  double value;           /* [0] constant */
  int64_t capacity;       /* [0: no limit] rows after a step */
  const char* evict;      /* ["never"] or "lru", "lfu", "step", "lru+lfu" */
  int64_t half_life;      /* [1000] steps, of "lru+lfu" */
  int64_t admit_after;    /* [0] occurrences of an id in updates before it gets a row */
  int64_t ttl;            /* [0: never] seconds of event time after which a row that no update had leaves */
} hstu_table_options;

HSTU_TABLES_API int32_t hstu_tables_version(void); /* HSTU_TABLES_VERSION of the library */
/* The text of the last failure in this thread, or "". Valid until the next failure in this thread. */
HSTU_TABLES_API const char* hstu_table_error(void);

HSTU_TABLES_API void hstu_table_options_init(hstu_table_options* options);
/* An empty table, or NULL. */
HSTU_TABLES_API hstu_table* hstu_table_open(const hstu_table_options* options);
HSTU_TABLES_API void hstu_table_close(hstu_table* table); /* NULL: nothing */

/* values (n, D) of ids (n), which may repeat: rows, or the initial values of ids without one. Creates
 * nothing. */
HSTU_TABLES_API int32_t hstu_table_lookup(hstu_table* table, const int64_t* ids, int64_t n, float* values);

/* A step: sums the gradients (n, D) of each id of ids (n), in their order, creates rows that are missing,
 * updates each row once, and then removes those beyond the limits. time: the event time in seconds, for ttl.
 * A gradient that is not finite is an error, and nothing is changed. */
HSTU_TABLES_API int32_t hstu_table_update(hstu_table* table, const int64_t* ids, int64_t n,
                                          const float* gradients, double learning_rate, int64_t time);

HSTU_TABLES_API int64_t hstu_table_rows(hstu_table* table); /* that exist; -1: a failure */
HSTU_TABLES_API int64_t
hstu_table_state_width(hstu_table* table); /* floats of an optimizer's state of a row */
/* Every row: ids (n), ascending, values (n, D) and, unless it is NULL, state (n, state width), in arrays for
 * `room` rows. *n: how many rows there are; if they are more than `room`, nothing is written. */
HSTU_TABLES_API int32_t hstu_table_export(hstu_table* table, int64_t room, int64_t* ids, float* values,
                                          float* state, int64_t* n);

/* Writes all that the table has into a new folder, which appears when it is complete: a checkpoint with this
 * table alone, which `hstu inspect`, `hstu train --warm-start` and hstu_table_load read. */
HSTU_TABLES_API int32_t hstu_table_save(hstu_table* table, const char* folder);
/* Of an empty table: takes what hstu_table_save wrote of one with the same name, dim, seed, initial values
 * and optimizer. V may have grown. Continues to the bit. */
HSTU_TABLES_API int32_t hstu_table_load(hstu_table* table, const char* folder);

#ifdef __cplusplus
}
#endif
