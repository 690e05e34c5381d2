#include "hstu/objects/upload_answers.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/objects/xml.h"

namespace hstu {
namespace {

// The name of the outermost element begins with that of the request. Its end is Result in AWS and Response in
// other stores.
void check_answers(std::string_view xml, std::string_view request) {
  check(
      xml.find(fmt::format("<{}", request)) != xml.npos && xml.find(fmt::format("</{}", request)) != xml.npos,
      "the answer of the object store is none to {}: is the endpoint that of an S3 store?", request);
}

std::int64_t number_of(std::string_view xml, const char* name, std::int64_t least) {
  const std::string text = element_line(xml, name);
  const auto number = parse_number<std::int64_t>(text);
  check(number && *number >= least, "the answer of the object store has the {} \"{}\"", name, text);
  return *number;
}

}  // namespace

UploadsPage parse_uploads(std::string_view xml) {
  check_answers(xml, "ListMultipartUploads");
  UploadsPage page;
  std::string_view rest = xml;
  while (const auto entry = take_element(rest, "Upload")) {
    BegunUpload upload{element_line(*entry, "Key"), element_line(*entry, "UploadId")};
    check(!upload.key.empty() && !upload.id.empty(),
          "the answer of the object store lists an upload without key or id");
    page.uploads.push_back(std::move(upload));
  }
  if (element_text(xml, "IsTruncated") == "true") {
    page.next_key = element_line(xml, "NextKeyMarker");
    page.next_id = element_line(xml, "NextUploadIdMarker");
    check(!page.next_key.empty(),
          "the answer of the object store is not the last one and does not name the next");
  }
  return page;
}

PartsPage parse_parts(std::string_view xml) {
  check_answers(xml, "ListParts");
  PartsPage page;
  std::string_view rest = xml;
  while (const auto entry = take_element(rest, "Part"))
    page.parts[number_of(*entry, "PartNumber", 1)] = {element_line(*entry, "ETag"),
                                                      number_of(*entry, "Size", 0)};
  if (element_text(xml, "IsTruncated") == "true") page.next = number_of(xml, "NextPartNumberMarker", 1);
  return page;
}

std::string parse_upload_id(std::string_view xml) {
  std::string id = element_line(xml, "UploadId");
  check(!id.empty(), "the object store begins an upload and does not name it");
  return id;
}

std::string completion_of(const std::map<std::int64_t, StoredPart>& parts) {
  std::string xml = "<CompleteMultipartUpload>";
  for (const auto& [number, part] : parts)
    xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number,
                       escaped_html(part.etag));
  return xml + "</CompleteMultipartUpload>";
}

}  // namespace hstu
