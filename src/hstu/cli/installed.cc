#include "hstu/cli/installed.h"

#include <filesystem>

#include "hstu/base/terminal.h"

namespace hstu {

std::optional<Path> installed_configs() {
  std::error_code error;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", error);
  Path folder = program.parent_path().parent_path() / "share/hstu/configs";
  if (error || !std::filesystem::is_directory(folder, error)) return std::nullopt;
  return folder;
}

Path find_config(const Path& word) {
  std::error_code error;
  if (word.empty() || word.is_absolute() || std::filesystem::exists(word, error)) return word;
  const std::optional<Path> folder = installed_configs();
  if (!folder || !std::filesystem::exists(*folder / word, error)) return word;
  print_note("configuration: {}\n", (*folder / word).string());
  return *folder / word;
}

}  // namespace hstu
