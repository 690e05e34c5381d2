// The options of a kind of model (kind.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/config/config.h"

namespace hstu {

// What options of a kind name of a dataset, beside [features].
struct DataNeeds {
  std::vector<std::string> actions;
  std::vector<std::string> event_columns;  // context columns that are read of every event of a history
  std::vector<std::string> label_columns;  // context columns of labels: requests do not have them
  // Contexts are the user's (batching/user_contexts.h): histories have them, and requests do not.
  bool user_contexts = false;
};

// The keys of section [model] that a kind has.
class KindOptions {
 public:
  virtual ~KindOptions() = default;
  virtual std::unique_ptr<KindOptions> clone() const = 0;
  virtual void describe(ConfigFields& fields) = 0;
  virtual DataNeeds data_needs() const { return {}; }
  // The keys that give the rows of tables of features that the kind has of its own, by the feature's name.
  virtual std::map<std::string, std::int64_t*> table_rows() { return {}; }
  // Of a run that begins: makes the paths of files absolute and names what the files contain, so that it can
  // be continued from any folder, and not with other contents.
  virtual void settle() {}
  // Of a run that continues `before`: what settle() would name is that run's, where nothing else is named.
  virtual void continue_from(const KindOptions& /*before*/) {}
  // Copies these files into the folder of an export, and names the copies by paths relative to it.
  virtual void export_files(const Path& /*folder*/) {}
  // The same paths in an export that is opened at `folder`.
  virtual void open_export(const Path& /*folder*/) {}
  // The key of the width of its beam search. Null: it has none.
  virtual std::int64_t* beam() { return nullptr; }
};

inline void describe(ConfigFields& fields, KindOptions& options) {
  options.describe(fields);
}

// Sets the width of a kind's beam search, if `beam` is not 0. UsageError if it has none.
inline void set_beam(KindOptions& options, std::int64_t beam) {
  if (beam == 0) return;
  std::int64_t* const key = options.beam();
  if (key == nullptr) fail_usage("--beam: a model of this kind has no beam search: leave it out");
  *key = beam;
}

// The options as those of a kind. InternalError if they are another kind's.
template <typename Options>
const Options& options_as(const KindOptions& options) {
  const auto* const found = dynamic_cast<const Options*>(&options);
  require(found != nullptr, "these are options of another kind of model");
  return *found;
}

}  // namespace hstu
