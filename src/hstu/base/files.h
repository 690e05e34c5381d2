// Files that are complete or absent: each is written under a temporary name, fsynced, then renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace hstu {

using Path = std::filesystem::path;

// Throws Error naming the path unless a file can be opened there that is a file: a pipe or a device never
// ends, or blocks.
void check_input_file(const Path& path);

// Reads a whole file. Throws Error naming the file if it is missing or unreadable.
std::string read_file(const Path& path);

// Replaces `path` by `bytes`: temporary name, fsync, rename, fsync of the folder (base/staged_file.h).
void write_file(const Path& path, std::string_view bytes);

// Throws Error naming the file if write_file could not create it. Call it before long work whose result is
// written there.
void check_writable(const Path& path);

// Throws Error naming the path if it is something else than a file or nothing: a rename would replace a
// device such as /dev/null.
void check_output_file(const Path& path);

// The text of a failed system call, and what to do about it.
std::string failure_reason(int error);

// Fsyncs a folder, so that a rename in it is durable.
void sync_folder(const Path& folder);

// XXH3 128-bit checksum of a file's bytes, 32 hexadecimal digits.
std::string file_checksum(const Path& path);

// A file that is written sequentially. Every failure (such as a full disk) throws Error naming the file.
class OutputFile {
 public:
  explicit OutputFile(Path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* bytes, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Overwrites `size` bytes at `offset` (headers whose counts are known last); keeps the write position.
  void overwrite(std::uint64_t offset, const void* bytes, std::size_t size);
  // Passes the bytes to the operating system: other readers see them, a crash of the machine may lose them.
  void flush();
  // Flushes and fsyncs. Without close() the content is undefined.
  void close();
  std::uint64_t size() const { return size_; }
  const Path& path() const { return path_; }

 private:
  Path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::string buffer_;
};

// A file of a known size whose parts may be written in any order, by several threads at the same time.
class PlacedFile {
 public:
  // Creates or empties the file; parts that are never written read as zeros.
  PlacedFile(Path path, std::uint64_t size);
  ~PlacedFile();
  PlacedFile(const PlacedFile&) = delete;
  PlacedFile& operator=(const PlacedFile&) = delete;

  void write_at(std::uint64_t offset, const void* bytes, std::size_t size);
  // Fsyncs. Without close() the content is undefined.
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

// Removes pages of mapped files from this process's memory; a later access reads them again. A pass over a
// file that releases the pages behind it uses memory that does not grow with the file.
void release_mapped(const void* begin, std::size_t bytes);

// A folder that gets its name only when it is complete. Write into path(); commit() fsyncs every file
// and renames the folder. Without commit() the destructor removes it.
class StagedFolder {
 public:
  // Removes the unfinished folder of a killed run, with a note. Throws UsageError if `final_path` already
  // exists (nothing is ever overwritten) or another program is writing it.
  explicit StagedFolder(const Path& final_path);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  const Path& path() const { return staging_; }
  void commit();
  // For a program that is about to end: removes every uncommitted folder, and none can be committed from then
  // on. Other threads may still be writing into them.
  static void remove_all_at_work();

 private:
  void lock_staging();

  Path final_;
  Path staging_;
  int lock_ = -1;  // the open folder; the process that holds its lock writes into it
  bool committed_ = false;
};

}  // namespace hstu
