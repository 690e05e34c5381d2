#include "hstu/cli/followed_folder.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include <sys/stat.h>

#include "hstu/base/error.h"
#include "hstu/base/first_bytes.h"
#include "hstu/base/glob.h"
#include "hstu/base/json_text.h"
#include "hstu/base/staged_file.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/config/config.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNoEvents[] = {".tmp",        ".part",      ".partial", ".filepart",
                                          ".crdownload", "._COPYING_", "~",        ".crc",
                                          ".md5",        ".sha1",      ".sha256",  ".sha512"};

bool is_for_events(const Path& name) {
  return std::none_of(name.begin(), name.end(), [](const Path& part) {
    const std::string& text = part.native();
    return (text.starts_with('.') && text != "..") || text.starts_with('_') ||
           std::any_of(std::begin(kNoEvents), std::end(kNoEvents),
                       [&](std::string_view ending) { return text.ends_with(ending); });
  });
}

// What is a line of a list, and a text of JSON.
bool is_one_line(const std::string& name) {
  return printable(name) == name && name.find_first_of("\n\t") == std::string::npos;
}

// Bytes and time. None: there is no such file; errno says why.
std::optional<FollowedFile> file_at(const Path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  errno = ENOENT;
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  return FollowedFile{.bytes = info.st_size,
                      .modified = std::int64_t{1'000'000'000} * info.st_mtim.tv_sec + info.st_mtim.tv_nsec};
}

bool is_one_line_of_text(const Path& file, std::int64_t bytes) {
  constexpr std::int64_t kLongest = 1 << 14;
  if (bytes > kLongest) return false;
  const std::string text = read_file(file);
  return is_text(text) && text.find('\n') >= text.size() - 1;
}

Json to_json(const FollowedFiles& files) {
  Json json = Json::object();
  for (const auto& [name, file] : files) {
    json[name] = {{"bytes", file.bytes}, {"modified", file.modified}, {"checksum", file.checksum}};
    if (file.without_events) json[name]["without_events"] = true;
  }
  return json;
}

FollowedFiles files_of(const Json& json) {
  FollowedFiles files;
  for (const auto& [name, entry] : json.items()) {
    FollowedFile& file = files[name];
    if (entry.is_number_integer()) {  // of an earlier version
      entry.get_to(file.bytes);
      continue;
    }
    entry.at("bytes").get_to(file.bytes);
    entry.at("modified").get_to(file.modified);
    entry.at("checksum").get_to(file.checksum);
    file.without_events = entry.contains("without_events");
  }
  return files;
}

struct MappingFile {
  std::string name = {};
};
void describe(ConfigFields& fields, MappingFile& o) {
  fields.field("file", o.name, "");
}

}  // namespace

void FollowState::save(const Path& file) const {
  StagedFile staged(file, StagedFile::Existing::replace);
  write_file(
      staged.temporary(),
      Json{{"read", to_json(read)}, {"reading", to_json(reading)}, {"before", before}, {"ignored", ignored}}
              .dump(2) +
          "\n");
  staged.commit();
}

FollowState read_follow_state(const Path& file) {
  FollowState state;
  if (!fs::exists(file)) return state;
  const Json json = parse_json(read_file(file), file);
  try {
    state.read = files_of(json.at("read"));
    state.reading = files_of(json.at("reading"));
    json.at("before").get_to(state.before);
    if (json.contains("ignored")) json.at("ignored").get_to(state.ignored);
  } catch (const Json::exception& error) {
    fail("{}: expected the files that were read: {}", file.string(), json_problem(error));
  }
  return state;
}

// Some keys of the schema; hstu prepare reads the others, and says what is wrong with them.
FollowedFolder::FollowedFolder(Path folder, const Path& schema, double settle)
    : folder_(folder.has_filename() ? std::move(folder) : folder.parent_path()), settle_(settle) {
  ConfigReader reader(read_config_file(schema), schema.string(), {});
  std::vector<MappingFile> attributes;
  std::vector<std::string> columns;
  reader.field("files", patterns_, "");
  reader.field("columns", columns, "");
  with_header_ = columns.empty();
  reader.sections("attribute", attributes, "");
  if (patterns_.empty()) fail_usage("{}: files: name at least one event file", schema.string());
  for (const MappingFile& file : attributes) mappings_.insert(Path(file.name).lexically_normal().string());
}

std::set<std::string> FollowedFolder::named() const {
  std::set<std::string> names;
  for (const std::string& pattern : patterns_) {
    for (const Path& path : glob_files(folder_, pattern)) {
      const Path name = path.lexically_relative(folder_).lexically_normal();
      if (is_for_events(name)) names.insert(name.string());
    }
  }
  return names;
}

std::set<std::string> FollowedFolder::not_named(const std::set<std::string>& named) const {
  std::map<Path, std::string> others;  // the first of each folder
  std::error_code error;
  fs::recursive_directory_iterator entry(folder_, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const Path name = entry->path().lexically_relative(folder_);
    std::error_code ignored;
    const bool linked_folder = entry->is_symlink(ignored) && entry->is_directory(ignored);
    if (!is_for_events(name)) {
      entry.disable_recursion_pending();
      continue;
    }
    if (!linked_folder && entry->is_directory(ignored)) continue;
    const auto below = named.lower_bound(name.string() + "/");
    if (named.contains(name.string()) || mappings_.contains(name.string()) ||
        (linked_folder && below != named.end() && below->starts_with(name.string() + "/")))
      continue;
    std::string& first = others[name.parent_path()];
    if (first.empty() || name.string() < first) first = printable(name.string());
  }
  std::set<std::string> names;
  for (const auto& [folder, first] : others) names.insert(first);
  return names;
}

void FollowedFolder::note(const std::string& name, const std::string& what) {
  std::string& noted = noted_[name];
  if (noted != what) print_note("note: {}: {}\n", (folder_ / name).string(), what);
  noted = what;
}

const std::string& FollowedFolder::checksum(const std::string& name, const FollowedFile& file) {
  Seen& seen = seen_[name];
  if (seen.file != file) seen = {file, Clock::now()};
  if (seen.checksum.empty()) seen.checksum = file_checksum(folder_ / name);
  return seen.checksum;
}

bool FollowedFolder::has(const FollowedFiles& files) const {
  return std::all_of(files.begin(), files.end(), [&](const auto& entry) {
    const auto& [name, file] = entry;
    const std::optional<FollowedFile> now = file_at(folder_ / name);
    return now && now->bytes == file.bytes && (file.modified < 0 || now->modified == file.modified);
  });
}

// Whether the file is in the dataset, as it is or as it was.
bool FollowedFolder::is_known(const std::string& name, const FollowedFile& file, const FollowState& state,
                              Look& look) {
  const auto known = state.read.find(name);
  if (known == state.read.end()) return false;
  const FollowedFile& read = known->second;
  const bool touched = read.modified >= 0 && read.modified != file.modified;
  if (read.bytes == file.bytes && (!touched || read.checksum == checksum(name, file))) return true;
  if (read.without_events) return false;
  look.changed.push_back(fmt::format("{}: had {} bytes when it was read, and has {}{} now",
                                     (folder_ / name).string(), read.bytes,
                                     read.bytes == file.bytes ? "other " : "", file.bytes));
  return true;
}

bool FollowedFolder::is_complete(const std::string& name, const FollowedFile& file, Look& look) {
  const std::chrono::duration<double> now =
      std::chrono::file_clock::to_sys(fs::file_time_type::clock::now()).time_since_epoch();
  const double age = now.count() - 1e-9 * static_cast<double>(file.modified);
  if (file.bytes > 0 && age >= settle_) return true;
  Seen& seen = seen_[name];
  if (seen.file != file) seen = {file, Clock::now()};
  if (file.bytes > 0 && seconds_since(seen.since) >= settle_) return true;
  look.waiting.push_back(name);
  look.clock_ahead = look.clock_ahead || (file.bytes > 0 && age < 0);
  return false;
}

// Unless it is a copy: no event is trained twice. Files without rows may be alike.
void FollowedFolder::add(const std::string& name, FollowedFile file, const FollowState& state, Look& look) {
  file.checksum = checksum(name, file);
  file.without_events = with_header_ && is_one_line_of_text(folder_ / name, file.bytes);
  for (const FollowedFiles* const files : {&state.read, &std::as_const(look.files)}) {
    const auto same = std::find_if(files->begin(), files->end(), [&](const auto& other) {
      return other.first != name && other.second.bytes == file.bytes &&
             other.second.checksum == file.checksum && !other.second.without_events;
    });
    if (same == files->end()) continue;
    return note(name, fmt::format("has the bytes of {}, and is not read: its events would be there twice",
                                  (folder_ / same->first).string()));
  }
  look.files.emplace(name, std::move(file));
}

Look FollowedFolder::look(const FollowState& state) {
  std::error_code error;
  check(fs::is_directory(folder_, error), "{}: the folder is gone: has its disk been unmounted?",
        folder_.string());
  Look look;
  const std::set<std::string> names = named();
  look.ignored = not_named(names);
  for (const std::string& name : look.ignored) {
    if (!state.ignored.contains(name))
      note(name, fmt::format("is not read, like all files there that the schema does not name by files = "
                             "[\"{}\"]",
                             fmt::join(patterns_, "\", \"")));
  }
  std::map<std::string, FollowedFile> links;  // after the files, of which they may be others' names
  for (const std::string& name : names) {
    const std::optional<FollowedFile> file = file_at(folder_ / name);
    if (!is_one_line(name)) {
      note(name, "its name is not one line of UTF-8, and it is not read: rename it");
    } else if (!file) {
      if (fs::is_symlink(folder_ / name, error)) note(name, "is a link to no file, and is not read: mend it");
    } else if (fs::is_symlink(folder_ / name, error)) {
      links.emplace(name, *file);
    } else {
      consider(name, *file, state, look);
    }
  }
  for (const auto& [name, file] : links) consider(name, file, state, look);
  std::erase_if(seen_, [&](const auto& seen) { return !names.contains(seen.first); });
  return look;
}

void FollowedFolder::consider(const std::string& name, const FollowedFile& file, const FollowState& state,
                              Look& look) {
  try {
    if (!is_known(name, file, state, look) && is_complete(name, file, look)) add(name, file, state, look);
  } catch (const Error& error) {  // it was removed meanwhile, or cannot be read
    if (file_at(folder_ / name)) note(name, error.what());
  }
}

}  // namespace hstu
