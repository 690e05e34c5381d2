#include "hstu/cli/followed_folder.h"

#include <chrono>

#include "hstu/base/error.h"
#include "hstu/base/json_text.h"
#include "hstu/base/staged_file.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

bool is_unfinished(const std::string& name) {
  return name.starts_with('.') || name.starts_with('_') || name.ends_with(".tmp") ||
         name.ends_with(".partial");
}

bool was_just_written(const fs::directory_entry& entry, double settle) {
  const std::chrono::duration<double> age = fs::file_time_type::clock::now() - entry.last_write_time();
  return age.count() < settle;
}

}  // namespace

void FollowState::save(const Path& file) const {
  StagedFile staged(file, StagedFile::Existing::replace);
  write_file(staged.temporary(),
             Json{{"read", read}, {"reading", reading}, {"before", before}}.dump(2) + "\n");
  staged.commit();
}

FollowState read_follow_state(const Path& file) {
  FollowState state;
  if (!fs::exists(file)) return state;
  const Json json = parse_json(read_file(file), file);
  try {
    json.at("read").get_to(state.read);
    json.at("reading").get_to(state.reading);
    json.at("before").get_to(state.before);
  } catch (const Json::exception& error) {
    fail("{}: expected the files that were read: {}", file.string(), json_problem(error));
  }
  return state;
}

bool is_parquet(const std::string& name) {
  return name.ends_with(".parquet");
}

std::map<std::string, std::int64_t> new_files(const Path& folder, const FollowState& state, double settle) {
  std::map<std::string, std::int64_t> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || is_unfinished(name)) continue;
    const auto bytes = static_cast<std::int64_t>(entry.file_size());
    if (const auto known = state.read.find(name); known != state.read.end()) {
      check(known->second == bytes,
            "{}: had {} bytes when it was read, and has {} now: files are read once and whole; write new "
            "events "
            "to new files, under a name that begins with '.' until they are complete",
            entry.path().string(), known->second, bytes);
      continue;
    }
    if (!was_just_written(entry, settle)) files[name] = bytes;
  }
  if (!files.empty())
    std::erase_if(files, [parquet = is_parquet(files.begin()->first)](const auto& file) {
      return is_parquet(file.first) != parquet;
    });
  return files;
}

}  // namespace hstu
