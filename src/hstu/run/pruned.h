// Reads a checkpoint beside a run that trains on: it may prune the checkpoint before it is read to its end.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "hstu/base/files.h"

namespace hstu {

// Whether `word`, "" or "best", names another checkpoint than the one at `path` by now.
bool is_replaced(const Path& checkpoints, const std::string& word, const Path& path);

// find_checkpoint(); `again`: with a note.
Path checkpoint_to_read(const Path& checkpoints, const std::string& word, bool again);

// body(path) for the checkpoint that `word` names (find_checkpoint in run/state.h), again with the new one if
// it fails because the run has replaced that one, and if `may_repeat` says so, when there is one.
template <typename Body>
auto read_checkpoint(const Path& checkpoints, const std::string& word, const Body& body,
                     const std::function<bool()>& may_repeat = {}) {
  constexpr int kAttempts = 20;
  for (int attempt = 0;; ++attempt) {
    const Path path = checkpoint_to_read(checkpoints, word, attempt > 0);
    try {
      return body(path);
    } catch (const std::exception&) {  // also of std::filesystem, where a file has left its folder
      if (attempt + 1 == kAttempts || (may_repeat && !may_repeat()) || !is_replaced(checkpoints, word, path))
        throw;
    }
  }
}

}  // namespace hstu
