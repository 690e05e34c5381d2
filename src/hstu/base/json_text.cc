#include "hstu/base/json_text.h"

#include <optional>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr int kDeepest = 64;

// What is between `first`, with which the text begins, and the first `second` after it.
std::string between(std::string_view text, std::string_view first, std::string_view second) {
  const std::size_t end = text.find(second, first.size());
  return std::string(text.substr(first.size(), end - first.size()));
}

// What follows `second`, if the text begins with `first` and has `second`.
std::optional<std::string> behind(std::string_view text, std::string_view first, std::string_view second) {
  const std::size_t at = text.find(second);
  if (!text.starts_with(first) || at == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(at + second.size()));
}

// Makes a value of what nlohmann's parser finds. (The parser's own callbacks would do, but look through a
// list again for each of its elements.)
class JsonBuilder {
 public:
  explicit JsonBuilder(JsonNumbers numbers) : numbers_(numbers) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(double value, const std::string& digits) {
    return put(numbers_ == JsonNumbers::texts ? Json(digits) : Json(value));
  }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(const std::string& name) {
    Json& object = *open_.back();
    if (object.contains(name))
      fail("the key \"{}\" occurs twice in an object", printable(name.substr(0, 80)));
    member_ = &object[name];
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception& error) {
    constexpr int kOutOfRange = 406;
    check(error.id != kOutOfRange, "a number is too large");
    fail("byte {}: not JSON", byte);
  }
  Json take() { return std::move(root_); }

 private:
  Json& add(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_array())
      return open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
    return *member_ = std::move(value);
  }
  bool put(Json value) {
    add(std::move(value));
    return true;
  }
  bool open(Json value) {
    check(std::ssize(open_) < kDeepest, "lists and objects are nested deeper than {}", kDeepest);
    open_.push_back(&add(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  JsonNumbers numbers_;
  Json root_;
  std::vector<Json*> open_;  // lists and objects, the outermost first
  Json* member_ = nullptr;   // of the innermost object, whose value comes next
};

}  // namespace

void check_json_nesting(std::string_view text, const Path& file) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      check(++depth <= kDeepest,
            "{}: byte {}: its lists and objects are nested deeper than {}: hstu did not write it",
            file.string(), i, kDeepest);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

Json parse_json(std::string_view text, JsonNumbers numbers) {
  JsonBuilder builder(numbers);
  Json::sax_parse(text, &builder);
  return builder.take();
}

Json parse_json(std::string_view text, const Path& file) {
  check_json_nesting(text, file);
  try {
    return parse_json(text);
  } catch (const Error& error) {
    fail("{}: {}: the file is torn or was altered", file.string(), error.what());
  }
}

std::string json_problem(const std::exception& error) {
  std::string_view text = error.what();
  const std::size_t end = text.find("] ");
  if (!text.starts_with("[json.exception.") || end == std::string_view::npos) return std::string(text);
  text.remove_prefix(end + 2);
  if (const auto type = behind(text, "cannot use ", " with ")) return "expected an object, found " + *type;
  if (const auto type = behind(text, "type must be ", ", but is "))
    return fmt::format("expected a value of the type {}, found {}",
                       between(text, "type must be ", ", but is "), *type);
  if (text.starts_with("key '") && text.ends_with("' not found"))
    return fmt::format("the field \"{}\" is missing", between(text, "key '", "' not found"));
  if (text.starts_with("array index ")) return "a list has too few elements";
  return std::string(text);
}

}  // namespace hstu
