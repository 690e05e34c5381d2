// Files that are whole or absent: everything is written under a temporary name, fsynced, then renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace hstu {

using Path = std::filesystem::path;

// Reads a whole file. Throws Error naming the file when it is missing or unreadable.
std::string read_file(const Path& path);

// Replaces `path` by `bytes`: temporary name, fsync, rename, fsync of the folder.
void write_file(const Path& path, std::string_view bytes);

// Throws Error naming the file when write_file could not make it: asked before long work whose result goes
// there.
void check_writable(const Path& path);

// XXH3 128-bit checksum of a file's bytes, 32 hexadecimal digits.
std::string file_checksum(const Path& path);

// A file being written front to back. Every failure (disk full above all) throws Error naming the file.
class OutputFile {
 public:
  explicit OutputFile(Path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* bytes, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Overwrites `size` bytes at `offset` (headers whose counts are known last); the write position stays.
  void overwrite(std::uint64_t offset, const void* bytes, std::size_t size);
  // Hands what was written to the operating system: other readers see it, a crash may still lose it.
  void flush();
  // Flushes and fsyncs. Without close() the content is not to be trusted.
  void close();
  std::uint64_t size() const { return size_; }
  const Path& path() const { return path_; }

 private:
  Path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::string buffer_;
};

// A file of a known size whose parts are written in any order, by many threads at once.
class PlacedFile {
 public:
  // Creates the file or empties it; parts never written read as zeros.
  PlacedFile(Path path, std::uint64_t size);
  ~PlacedFile();
  PlacedFile(const PlacedFile&) = delete;
  PlacedFile& operator=(const PlacedFile&) = delete;

  void write_at(std::uint64_t offset, const void* bytes, std::size_t size);
  // Fsyncs. Without close() the content is not to be trusted.
  void close();

 private:
  Path path_;
  int descriptor_ = -1;
};

// A file mapped read-only and shared; empty files map to an empty span.
class MappedFile {
 public:
  explicit MappedFile(const Path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Takes pages of mapped files out of this process's memory; they are read again when they are looked at
// again. A walk over a file that lets go of what it has passed has a size that does not grow with the file.
void release_mapped(const void* begin, std::size_t bytes);

// A folder that appears under its name only when it is complete. Work in path(); commit() fsyncs every file
// and renames. Without commit() the destructor removes what was written.
class StagedFolder {
 public:
  // What a killed run left behind is removed, with a notice. Throws UsageError when `final_path` exists
  // already (nothing is ever overwritten) or another program is making it.
  explicit StagedFolder(const Path& final_path);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  const Path& path() const { return staging_; }
  void commit();
  // Removes every staged folder that is not committed, for a program that is about to end; from then on none
  // can be committed. Other threads may still be writing into them.
  static void remove_all_at_work();

 private:
  void lock_staging();

  Path final_;
  Path staging_;
  int lock_ = -1;  // The open folder: whoever holds its lock is at work in it.
  bool committed_ = false;
};

}  // namespace hstu
