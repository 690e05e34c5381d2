// libhstu_rocksdb.so: values of fixed size in RocksDB. The database is scratch, so nothing is synced or
// logged.
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "hstu/rows/rocksdb/calls.h"

struct HstuRocksdb {
  std::unique_ptr<rocksdb::DB> database;
};

namespace {

using rocksdb::Slice;
using rocksdb::Status;

const char* message_of(const Status& status) {
  if (status.ok()) return nullptr;
  thread_local std::string message;
  message = status.ToString();
  return message.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer): it lives as long as the thread
}

// Keys in the order of their numbers.
using Key = std::array<char, sizeof(std::uint64_t)>;
Key key_of(std::uint64_t number) {
  Key key{};
  for (std::size_t i = 0; i < key.size(); ++i)
    key[i] = static_cast<char>(number >> (8 * (key.size() - 1 - i)));
  return key;
}
Slice slice_of(const Key& key) {
  return {key.data(), key.size()};
}

const char* open(const char* folder, HstuRocksdb** database) {
  rocksdb::Options options;
  options.create_if_missing = options.error_if_exists = true;
  options.compression = rocksdb::kNoCompression;  // rows are noise to it
  options.write_buffer_size = std::size_t{16} << 20;
  options.max_background_jobs = 2;
  options.info_log_level = rocksdb::WARN_LEVEL;
  options.keep_log_file_num = 1;
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;  // the cache of rows is above
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* opened = nullptr;
  const Status status = rocksdb::DB::Open(options, folder, &opened);
  if (status.ok()) *database = new HstuRocksdb{std::unique_ptr<rocksdb::DB>(opened)};
  return message_of(status);
}

const char* read(HstuRocksdb* database, std::size_t n, const std::uint64_t* keys, std::size_t bytes,
                 char* const* values) {
  std::vector<Key> names(n);
  std::vector<Slice> slices(n);
  for (std::size_t i = 0; i < n; ++i) {
    names[i] = key_of(keys[i]);
    slices[i] = slice_of(names[i]);
  }
  std::vector<rocksdb::PinnableSlice> found(n);
  std::vector<Status> statuses(n);
  database->database->MultiGet(rocksdb::ReadOptions(), database->database->DefaultColumnFamily(), n,
                               slices.data(), found.data(), statuses.data());
  for (std::size_t i = 0; i < n; ++i) {
    if (statuses[i].ok() && found[i].size() != bytes)
      statuses[i] = Status::Corruption("a row of another size");
    if (!statuses[i].ok()) return message_of(statuses[i]);
    std::memcpy(values[i], found[i].data(), bytes);
  }
  return nullptr;
}

const char* write(HstuRocksdb* database, std::size_t n, const std::uint64_t* keys, std::size_t bytes,
                  const char* const* values) {
  rocksdb::WriteBatch batch;
  for (std::size_t i = 0; i < n; ++i) {
    const Key key = key_of(keys[i]);
    const Status status = batch.Put(slice_of(key), Slice(values[i], bytes));
    if (!status.ok()) return message_of(status);
  }
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return message_of(database->database->Write(options, &batch));
}

void close(HstuRocksdb* database) {
  delete database;
}

}  // namespace

const HstuRocksdbCalls* hstu_rocksdb_calls() {
  static const HstuRocksdbCalls calls{
      .interface = HSTU_ROCKSDB_INTERFACE, .open = &open, .read = &read, .write = &write, .close = &close};
  return &calls;
}
