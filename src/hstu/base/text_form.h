// Whether texts that are taken for categories are something else.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hstu {

// What different texts are, if they are hardly categories: "numbers with fractions", "lists with |"; else "".
// Numbers: nine in ten, of which a tenth has a fraction. Lists: more than half have the separator (| ; or ,)
// and all have fewer different parts than there are texts. Of few texts nothing is said.
std::string unlike_categories(std::span<const std::string_view> texts);

}  // namespace hstu
