/* The interface between hstu and libhstu_rocksdb.so, the only part that is built with RocksDB: hstu itself
   starts on machines without it. In C, because the two are linked apart. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { HSTU_ROCKSDB_INTERFACE = 1 }; /* grows when HstuRocksdbCalls changes */

typedef struct HstuRocksdb HstuRocksdb;

/* A call that can fail returns null, or what went wrong: a text of this thread, until its next call. */
typedef struct HstuRocksdbCalls {
  int interface; /* HSTU_ROCKSDB_INTERFACE */
  /* A new, empty database in a folder that is there. */
  const char* (*open)(const char* folder, HstuRocksdb** database);
  /* The values of `n` distinct keys, which exist: `bytes` each, to values + i * bytes. Any number of threads.
   */
  const char* (*read)(HstuRocksdb* database, size_t n, const uint64_t* keys, size_t bytes,
                      char* const* values);
  /* Sets the values of `n` distinct keys. Any number of threads. */
  const char* (*write)(HstuRocksdb* database, size_t n, const uint64_t* keys, size_t bytes,
                       const char* const* values);
  void (*close)(HstuRocksdb* database);
} HstuRocksdbCalls;

/* The only symbol that hstu looks up. */
#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) const HstuRocksdbCalls*
    hstu_rocksdb_calls(void);
