#include "hstu/objects/fetched_folder.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/objects/connections.h"

namespace hstu {
namespace {

// Names the content: an object that changes has another name.
std::string content_name(const std::string& url, const StoredObject& object) {
  return checksum(std::string_view(fmt::format("{}\n{}\n{}\n{}", url, object.key, object.etag, object.size)));
}

// A store that lists a key twice, or one below another, would have two objects become one file.
void check_distinct(const std::string& url, std::vector<std::string> paths) {
  std::ranges::sort(paths);
  const auto twice = std::ranges::adjacent_find(paths);
  check(twice == paths.end(),
        "{}: the store lists the key \"{}\" twice: is the endpoint that of an S3 store?", url,
        twice == paths.end() ? "" : *twice);
  for (const std::string& path : paths)
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      check(!std::ranges::binary_search(paths, path.substr(0, slash)),
            "{}: the object \"{}\" is below the object \"{}\", which is a file: copy one of them to another "
            "key",
            url, path, path.substr(0, slash));
}

}  // namespace

Path fetch_folder(const std::string& url, const StoreOptions& options, const Path& cache) {
  const ObjectUrl place = parse_object_url(url);
  const ObjectStore store(options);
  std::vector<StoredObject> objects = store.list(place);
  std::erase_if(objects, [](const StoredObject& object) { return object.key.ends_with('/'); });  // folders
  if (objects.empty()) fail_usage("{}: no objects are there: check the names of bucket and folder", url);
  std::vector<std::string> paths;
  std::int64_t bytes = 0;
  for (const StoredObject& object : objects) {
    paths.emplace_back(relative_path(object.key, place.prefix));
    bytes += object.size;
  }
  check_distinct(url, paths);
  print_note("{}: {} objects, {}\n", url, with_separators(std::ssize(objects)),
             human_bytes(static_cast<double>(bytes)));

  const Path whole = std::filesystem::absolute(cache) / "objects";
  Path files = cache / "files";
  std::filesystem::create_directories(whole);
  const FileLock lock(cache / ".lock");
  if (!lock.held()) fail_usage("{}: another process downloads there: wait for its end", cache.string());
  for_each_by_connections(objects.size(), [&](std::size_t n) {
    const Path complete = whole / content_name(url, objects[n]);
    if (std::filesystem::exists(complete)) return;
    const Path begun = Path(complete) += ".partial";
    store.download(place.bucket, objects[n], begun);
    std::filesystem::rename(begun, complete);
  });

  std::filesystem::remove_all(files);
  for (std::size_t n = 0; n < objects.size(); ++n) {
    const Path file = files / paths[n];
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(whole / content_name(url, objects[n]), file);
  }
  return files;
}

}  // namespace hstu
