// Requests and answers as JSON. docs/serving.md
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/score/request.h"
#include "hstu/score/request_form.h"

namespace hstu {

// What a body asks for: one request, or several in {"requests": [..]}.
struct RequestBody {
  std::vector<ScoreRequest> requests;
  bool is_list = false;
  std::int64_t unknown_texts = 0;  // of context columns, that the dataset does not have: read as code 0
};

// UsageError naming the request and the field that is wrong.
RequestBody read_json_requests(std::string_view body, Asked asked, const RequestForm& form,
                               const std::vector<std::string>& tasks);

// One JSON object; `model`: the version that answered.
std::string write_json_answers(const std::vector<ScoreAnswer>& answers, bool is_list, Asked asked,
                               std::string_view model, const RequestForm& form,
                               const std::vector<std::string>& tasks);

// {"error": "..."}
std::string json_error(std::string_view text);

}  // namespace hstu
