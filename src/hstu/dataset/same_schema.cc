#include "hstu/dataset/same_schema.h"

#include <algorithm>
#include <string>
#include <vector>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/dataset/names.h"

namespace hstu {
namespace {

std::string words(const std::vector<ActionBit>& actions) {
  std::vector<std::string> words;
  words.reserve(actions.size());
  for (const ActionBit& action : actions) words.push_back(fmt::format("{} = {}", action.name, action.bit));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string words(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

// The first of `wanted` that is not among `names`; null if all are.
const std::string* missing(const std::vector<std::string>& wanted, const std::vector<std::string>& names) {
  const auto absent = std::find_if(wanted.begin(), wanted.end(),
                                   [&](const std::string& name) { return !contains(names, name); });
  return absent == wanted.end() ? nullptr : &*absent;
}

}  // namespace

void check_same_schema(const Manifest& known, const Path& known_folder, const Manifest& other,
                       const Path& other_folder) {
  const auto refuse = [&](const std::string& what, const std::string& expected, const std::string& found) {
    fail_usage(
        "{}: {}: expected {}, as in {} of the run, found {}: prepare it with the same schema and "
        "--codes-from that dataset",
        other_folder.string(), what, expected, known_folder.string(), found);
  };
  if (known.actions != other.actions)
    refuse("actions and their bits", words(known.actions), words(other.actions));
  if (known.times != other.times) {
    const auto kind = [](const Manifest& manifest) {
      return manifest.times == Times::kOrder ? "an order without times" : "times in seconds";
    };
    refuse("times", kind(known), kind(other));
  }
  if (known.label != other.label) refuse("label", known.label, other.label);
  if (known.pools != other.pools) refuse("pools", words(known.pools), words(other.pools));
  if (const std::string* const name = missing(known.context, other.context))
    refuse("context columns", *name, words(other.context));
  if (const std::string* const name = missing(known.attributes, other.attributes))
    refuse("item attributes", *name, words(other.attributes));
  if (known.weighted && !other.weighted) refuse("weights", "a weight of each event", "none");
  for (const char* of : {"user", "item"}) {
    const auto kind = [of](const Manifest& manifest) {
      return std::string(manifest.hashed.contains(of) ? "hashes of texts" : "numbers");
    };
    if (kind(known) != kind(other)) refuse(fmt::format("ids of {}s", of), kind(known), kind(other));
  }
  // Codes count the texts of one log: another log has other texts behind the same codes, unless it began with
  // the texts of this one.
  for (const std::string& of : known.names) {
    if (of == "user" || of == "item") continue;
    if (missing({of}, other.names) != nullptr) refuse("texts of", of, words(other.names));
    const std::string expected = known.columns.at(names_file(of)).checksum,
                      found = other.columns.at(names_file(of)).checksum;
    if (!expected.empty() && expected == found) continue;
    if (!std::filesystem::exists(known_folder / kManifestFile))
      refuse(fmt::format("texts behind the codes of {}", of), expected, found);
    const Names mine(known_folder, known, of), theirs(other_folder, other, of);
    for (std::int64_t row = 0; row < mine.size(); ++row) {
      const std::string_view text = row < theirs.size() ? theirs.name(row) : "none";
      if (row >= theirs.size() || text != mine.name(row)) {
        refuse(fmt::format("the text of code {} of {}", row + 1, of), fmt::format("\"{}\"", mine.name(row)),
               fmt::format("\"{}\"", text));
      }
    }
  }
}

}  // namespace hstu
