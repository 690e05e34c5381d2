// The XML of uploads in parts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hstu {

// An upload that was begun and neither completed nor aborted.
struct BegunUpload {
  std::string key, id;
};

// One answer to ListMultipartUploads.
struct UploadsPage {
  std::vector<BegunUpload> uploads;
  std::string next_key, next_id;  // where the next page begins; both "": the last page
};

struct StoredPart {
  std::string etag;
  std::int64_t size = 0;
};

// One answer to ListParts.
struct PartsPage {
  std::map<std::int64_t, StoredPart> parts;  // by number, from 1
  std::int64_t next = 0;                     // number behind which the next page begins; 0: the last page
};

// Error for what is no such answer. Elements that are not needed are skipped.
UploadsPage parse_uploads(std::string_view xml);
PartsPage parse_parts(std::string_view xml);
std::string parse_upload_id(std::string_view xml);  // of an answer to CreateMultipartUpload

// The body of CompleteMultipartUpload.
std::string completion_of(const std::map<std::int64_t, StoredPart>& parts);

}  // namespace hstu
