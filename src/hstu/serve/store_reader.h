// Exports that a store of objects publishes, as a folder that servers follow.
#pragma once

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "hstu/base/file_lock.h"
#include "hstu/base/files.h"
#include "hstu/objects/object_store.h"
#include "hstu/objects/publication.h"

namespace hstu {

// Keeps `folder` as hstu publish keeps a folder on disk: exports, and a link `current`.
class StoreReader {
 public:
  // UsageError for a url or options that are none, and if another process downloads to `folder`.
  StoreReader(const std::string& url, const StoreOptions& options, Path folder);

  // Downloads the export that the store's `current` names and the one that it needs, what is missing of them,
  // compares all checksums, lets the link `current` name it, and removes exports that neither this nor the
  // call before needs. Whether it changed. Throws Error, and the link is as it was. Reads the file of keys.
  bool update();

  // Ends an update at work, by an error.
  void stop() { stop_ = true; }

 private:
  StoredExport described(const std::string& name) const;
  bool is_here(const std::string& name, const StoredExport& stored) const;
  void download(const std::string& name, const StoredExport& stored) const;
  void install(const std::string& name, const StoredExport& stored) const;
  void remove_others(const std::set<std::string>& needed);

  ObjectUrl url_;
  StoreOptions options_;
  ObjectStore store_;  // of the last update
  Path folder_, staging_;
  FileLock lock_;
  std::string current_ = {};           // of the last update
  std::set<std::string> needed_ = {};  // folders, by it
  std::atomic<bool> stop_ = false;
};

// Updates a folder again and again, in a thread of its own. What fails is a warning. Its end stops the
// reader.
class StoreFollower {
 public:
  // `reader` must outlive it.
  StoreFollower(StoreReader& reader, double seconds);
  ~StoreFollower();
  StoreFollower(const StoreFollower&) = delete;
  StoreFollower& operator=(const StoreFollower&) = delete;

 private:
  StoreReader& reader_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace hstu
