#include "hstu/base/glob.h"

#include <glob.h>

namespace hstu {

std::string glob_escaped(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::vector<Path> glob_files(const Path& folder, const std::string& pattern) {
  std::vector<Path> files;
  glob_t found{};
  const std::string before = folder.empty() ? "" : glob_escaped(folder.string()) + "/";
  if (::glob((before + pattern).c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return files;
}

}  // namespace hstu
