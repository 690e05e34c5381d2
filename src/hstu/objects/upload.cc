#include "hstu/objects/upload.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/objects/connections.h"
#include "hstu/objects/upload_answers.h"

namespace hstu {
namespace {

constexpr std::int64_t kMostParts = 10'000;  // of an object, by the interface of S3

class SentFile {
 public:
  explicit SentFile(Path path)
      : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
    check(descriptor_ >= 0, "{}: cannot be read: {}", path_.string(), failure_reason(errno));
  }
  ~SentFile() { ::close(descriptor_); }
  SentFile(const SentFile&) = delete;
  SentFile& operator=(const SentFile&) = delete;

  ClientBody part(std::int64_t begin, std::int64_t bytes) const {
    return {bytes, [this, begin](std::int64_t offset, char* to, std::size_t size) {
              ssize_t read = -1;
              do read = ::pread(descriptor_, to, size, begin + offset);
              while (read < 0 && errno == EINTR);
              check(read >= 0, "{}: cannot be read: {}", path_.string(), failure_reason(errno));
              check(read > 0, "{}: became shorter while it was sent", path_.string());
              return static_cast<std::size_t>(read);
            }};
  }

 private:
  Path path_;
  int descriptor_;
};

std::vector<BegunUpload> begun_uploads(const ObjectStore& store, const std::string& bucket,
                                       const std::string& prefix) {
  std::vector<BegunUpload> uploads;
  PagesSeen seen;
  for (UploadsPage page;;) {
    std::string query = "prefix=" + percent_encoded(prefix, false) + "&";
    if (!page.next_key.empty()) {
      query = fmt::format("key-marker={}&{}upload-id-marker={}&", percent_encoded(page.next_key, false),
                          query, percent_encoded(page.next_id, false));
    }
    const StoreAnswer answer =
        store.ask({.bucket = bucket, .query = query + "uploads=", .about = object_name(bucket, prefix)},
                  {"AccessDenied"});
    if (!answer.refused.empty()) return uploads;  // the right to list them is one of its own
    UploadsPage next = parse_uploads(answer.text);
    for (BegunUpload& upload : next.uploads) uploads.push_back(std::move(upload));
    if (next.next_key.empty()) return uploads;
    seen.add(next.next_key + '\n' + next.next_id, uploads.size(), object_name(bucket, prefix) + ", uploads");
    page = std::move(next);
  }
}

void abort_upload(const ObjectStore& store, const std::string& bucket, const BegunUpload& upload) {
  store.ask({.method = "DELETE",
             .bucket = bucket,
             .key = upload.key,
             .query = "uploadId=" + percent_encoded(upload.id, false)},
            {"NoSuchUpload"});
}

// An object that is made of parts.
class PartedUpload {
 public:
  PartedUpload(const ObjectStore& store, std::string bucket, const FileUpload& upload, std::int64_t bytes,
               std::int64_t part_bytes)
      : store_(store),
        bucket_(std::move(bucket)),
        upload_{upload.key, ""},
        file_(upload.file),
        bytes_(bytes),
        part_bytes_(std::max(part_bytes, (bytes + kMostParts - 1) / kMostParts)) {
    for (const BegunUpload& begun : begun_uploads(store_, bucket_, upload_.key)) {
      if (begun.key != upload_.key || (upload_.id.empty() && take_over(begun))) continue;
      abort_upload(store_, bucket_, begun);
    }
    if (!upload_.id.empty()) return;
    upload_.id = parse_upload_id(
        store_.ask({.method = "POST", .bucket = bucket_, .key = upload_.key, .query = "uploads="}).text);
  }

  std::vector<std::int64_t> missing() const {
    std::vector<std::int64_t> numbers;
    for (std::int64_t number = 1; number <= parts(); ++number)
      if (!stored_.contains(number)) numbers.push_back(number);
    return numbers;
  }

  void send(std::int64_t number) {
    StoreAnswer answer = store_.ask(
        {.method = "PUT",
         .bucket = bucket_,
         .key = upload_.key,
         .query = fmt::format("partNumber={}&uploadId={}", number, percent_encoded(upload_.id, false)),
         .body = file_.part((number - 1) * part_bytes_, size_of(number))},
        {"NoSuchUpload"});
    check(answer.refused.empty(), "{}: somebody aborted its upload: run the command again, alone", name());
    check(!answer.etag.empty(), "{}: the store takes part {} and names no ETag of it", name(), number);
    const std::lock_guard lock(mutex_);
    stored_[number] = {std::move(answer.etag), size_of(number)};
  }

  void complete() {
    const std::string body = completion_of(stored_);
    const StoreAnswer answer =
        store_.ask({.method = "POST",
                    .bucket = bucket_,
                    .key = upload_.key,
                    .query = "uploadId=" + percent_encoded(upload_.id, false),
                    .body = body_of(body)},
                   {"NoSuchUpload", "InvalidPart", "InvalidPartOrder", "EntityTooSmall"});
    // An answer that was lost may have been that it is complete.
    if (answer.refused.empty() || (answer.refused == "NoSuchUpload" && is_there())) return;
    abort_upload(store_, bucket_, upload_);
    fail("{}: the store does not make an object of its {} parts of {} bytes ({}): run the command again{}",
         name(), parts(), part_bytes_, answer.refused,
         answer.refused == "EntityTooSmall" ? " with a larger --s3-part" : ", which sends them again");
  }

 private:
  std::string name() const { return object_name(bucket_, upload_.key); }
  std::int64_t parts() const { return (bytes_ + part_bytes_ - 1) / part_bytes_; }
  std::int64_t size_of(std::int64_t number) const {
    return std::min(part_bytes_, bytes_ - (number - 1) * part_bytes_);
  }

  // Whether it has parts of this size: the first one says it, since there is a second.
  bool take_over(const BegunUpload& begun) {
    std::map<std::int64_t, StoredPart> stored;
    for (std::int64_t after = 0;;) {
      std::string query = after == 0 ? "" : fmt::format("part-number-marker={}&", after);
      query += "uploadId=" + percent_encoded(begun.id, false);
      const StoreAnswer answer =
          store_.ask({.bucket = bucket_, .key = begun.key, .query = query}, {"NoSuchUpload"});
      if (!answer.refused.empty()) return false;
      const PartsPage page = parse_parts(answer.text);
      stored.insert(page.parts.begin(), page.parts.end());
      if (page.next == 0) break;
      check(page.next > after && page.next <= kMostParts, "{}: the store's list of parts does not end",
            name());
      after = page.next;
    }
    if (!stored.contains(1) || stored[1].size != part_bytes_) return false;
    std::erase_if(stored, [this](const auto& part) {
      return part.first > parts() || part.second.size != size_of(part.first) || part.second.etag.empty();
    });
    stored_ = std::move(stored);
    upload_ = begun;
    return true;
  }

  bool is_there() const {
    const auto objects = store_.list({bucket_, upload_.key});
    return std::ranges::any_of(objects, [this](const StoredObject& object) {
      return object.key == upload_.key && object.size == bytes_;
    });
  }

  const ObjectStore& store_;
  std::string bucket_;
  BegunUpload upload_;
  SentFile file_;
  std::int64_t bytes_, part_bytes_;
  std::mutex mutex_;
  std::map<std::int64_t, StoredPart> stored_;
};

void upload_whole(const ObjectStore& store, const std::string& bucket, const FileUpload& upload,
                  std::int64_t bytes) {
  const SentFile file(upload.file);
  store.ask({.method = "PUT", .bucket = bucket, .key = upload.key, .body = file.part(0, bytes)});
}

}  // namespace

void upload_files(const ObjectStore& store, const std::string& bucket, const std::vector<FileUpload>& files,
                  std::int64_t part_bytes) {
  std::vector<std::unique_ptr<PartedUpload>> parted;
  std::vector<std::function<void()>> work;
  for (const FileUpload& upload : files) {
    const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(upload.file));
    if (bytes <= part_bytes) {
      work.emplace_back([&store, &bucket, &upload, bytes] { upload_whole(store, bucket, upload, bytes); });
      continue;
    }
    parted.push_back(std::make_unique<PartedUpload>(store, bucket, upload, bytes, part_bytes));
    PartedUpload& begun = *parted.back();
    for (const std::int64_t number : begun.missing())
      work.emplace_back([&begun, number] { begun.send(number); });
  }
  for_each_by_connections(work.size(), [&](std::size_t n) { work[n](); });
  for_each_by_connections(parted.size(), [&](std::size_t n) { parted[n]->complete(); });
}

void abort_uploads(const ObjectStore& store, const ObjectUrl& url,
                   const std::function<bool(const std::string& key)>& ours) {
  for (const BegunUpload& upload : begun_uploads(store, url.bucket, url.prefix))
    if (upload.key.starts_with(url.prefix) && ours(upload.key)) abort_upload(store, url.bucket, upload);
}

}  // namespace hstu
