// The parts of which pages are made. All text is escaped here.
#pragma once

#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

using Cells = std::vector<std::string>;

// On a narrow screen the table scrolls, and not the page.
std::string html_table(const Cells& head, const std::vector<Cells>& rows);
// "" if the body, which is HTML, is empty.
std::string section(const std::string& title, const std::string& body);
// A whole page without scripts or external resources. `body`: HTML.
std::string html_page(const std::string& title, const std::string& body);

// Writes a page of html_page(). Replaces such a page or an empty file; UsageError
// if `path` has anything else.
void write_page(const Path& path, const std::string& page);

}  // namespace hstu
