#include "hstu/events/dictionaries.h"

#include "hstu/dataset/names.h"

namespace hstu {

Dictionaries read_dictionaries(const Path& dataset, const Manifest& manifest) {
  Dictionaries dictionaries;
  for (const std::string& of : manifest.names) {
    if (of == "user" || of == "item") continue;
    const Names names(dataset, manifest, of);
    for (std::int64_t row = 0; row < names.size(); ++row) dictionaries[of].emplace_back(names.name(row));
  }
  return dictionaries;
}

}  // namespace hstu
