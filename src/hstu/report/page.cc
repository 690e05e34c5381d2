#include "hstu/report/page.h"

#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/report/style.h"

namespace hstu {

std::string html_table(const Cells& head, const std::vector<Cells>& rows) {
  std::string text = "<div class=\"wide\"><table><tr>";
  for (const std::string& cell : head) text += "<th>" + escaped_html(cell) + "</th>";
  for (const Cells& row : rows) {
    text += "</tr>\n<tr>";
    for (const std::string& cell : row) text += "<td>" + escaped_html(cell) + "</td>";
  }
  return text + "</tr></table></div>\n";
}

std::string section(const std::string& title, const std::string& body) {
  return body.empty() ? "" : fmt::format("<section><h2>{}</h2>\n{}</section>\n", escaped_html(title), body);
}

namespace {

// Every page begins with it.
constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"generator\" "
    "content=\"hstu\">";

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "{3}<meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title>\n<style>{1}</style></head>\n"
      "<body><h1>{0}</h1>\n{2}</body></html>\n",
      escaped_html(title), kReportStyle, body, kHead);
}

void write_page(const Path& path, const std::string& page) {
  if (std::filesystem::is_regular_file(path) && std::filesystem::file_size(path) > 0) {
    std::string head(kHead.size(), '\0');
    std::ifstream(path, std::ios::binary).read(head.data(), static_cast<std::streamsize>(head.size()));
    if (head != kHead)
      fail_usage(
          "the output file {} already exists and is no page of hstu: choose another name or remove it first",
          path.string());
  }
  write_file(path, page);
}

}  // namespace hstu
