// The parts of which pages are made. All text is escaped here.
#pragma once

#include <string>
#include <vector>

namespace hstu {

using Cells = std::vector<std::string>;

std::string html_table(const Cells& head, const std::vector<Cells>& rows);
// "" if the body, which is HTML, is empty.
std::string section(const std::string& title, const std::string& body);
// A whole page without scripts or external resources. `body`: HTML.
std::string html_page(const std::string& title, const std::string& body);

}  // namespace hstu
