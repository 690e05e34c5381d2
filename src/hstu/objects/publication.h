// Published exports as objects below s3://BUCKET/FOLDER. docs/serving.md
//
//   FOLDER/current             names the published export: the text NAME, written last
//   FOLDER/NAME.json           its files with sizes and checksums, written after them
//   FOLDER/NAME/PATH           its files
//
// NAME has the checksum of NAME.json, which has those of all files: what is below a name never changes, and a
// reader sees a whole export or none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "hstu/objects/object_url.h"

namespace hstu {

struct StoredFile {
  std::int64_t bytes = 0;
  std::string checksum;  // base/checksum.h
};

struct StoredExport {
  std::string folder;  // its name in a folder, "step_00000004"
  std::string base;    // name() of the export that it has only the changes since; "": none
  std::map<std::string, StoredFile> files;  // by path, "/" between parts

  std::string manifest() const;  // JSON
  std::string name() const;      // FOLDER-CHECKSUM
};

// Error naming the object, if the text is not the manifest that belongs to the name, or names paths or an
// export elsewhere.
StoredExport parse_stored_export(const std::string& name, std::string_view manifest);

// Keys of the objects of a publication.
std::string current_key(const ObjectUrl& url);
std::string manifest_key(const ObjectUrl& url, const std::string& name);
std::string files_prefix(const ObjectUrl& url, const std::string& name);  // ends with /

// The text of `current` as a name; Error if it is none.
std::string parse_current(std::string_view text, const ObjectUrl& url);

}  // namespace hstu
