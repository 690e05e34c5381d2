#include "hstu/run/pruned.h"

#include "hstu/base/terminal.h"
#include "hstu/run/state.h"

namespace hstu {

bool is_replaced(const Path& checkpoints, const std::string& word, const Path& path) {
  if (!word.empty() && word != kBestLink) return false;
  try {
    return find_checkpoint(checkpoints, word) != path;
  } catch (const std::exception&) {
    return false;
  }
}

Path checkpoint_to_read(const Path& checkpoints, const std::string& word, bool again) {
  Path path = find_checkpoint(checkpoints, word);
  if (again)
    print_note("the run has replaced that checkpoint: reading {} instead\n", path.filename().string());
  return path;
}

}  // namespace hstu
