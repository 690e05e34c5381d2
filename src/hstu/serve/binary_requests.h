// Requests and answers as little-endian numbers of 64 bits (docs/serving.md): a quarter of JSON's bytes, and
// no digits to parse.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hstu/score/request.h"

namespace hstu {

// `columns`: context columns of the dataset. UsageError naming the byte where the body is not as it says.
std::vector<ScoreRequest> read_binary_requests(std::string_view body, Asked asked, std::size_t columns);

std::string write_binary_answers(const std::vector<ScoreAnswer>& answers, std::string_view model);

}  // namespace hstu
