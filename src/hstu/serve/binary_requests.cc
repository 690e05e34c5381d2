#include "hstu/serve/binary_requests.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hstu/base/error.h"

namespace hstu {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::int64_t kRequests = 0x3151545348;  // "HSTQ1", as bytes
constexpr std::int64_t kAnswers = 0x3141545348;   // "HSTA1"
constexpr std::int64_t kExcludeSeen = 1, kContexts = 2, kEventContexts = 4;
constexpr std::int64_t kSeenActions = 0xff00;  // without one: all events

class Reader {
 public:
  explicit Reader(std::string_view body) : body_(body) {}

  std::int64_t number(const char* what) {
    std::int64_t value = 0;
    std::memcpy(&value, take(sizeof value, what), sizeof value);
    return value;
  }
  // At most as many as the body has bytes, whatever it says.
  std::int64_t count(const char* what) {
    const std::int64_t n = number(what);
    if (n < 0 || n > std::ssize(body_)) fail_usage("body: byte {}: {}: {} is not possible", at_ - 8, what, n);
    return n;
  }
  // Padded to 8 bytes.
  template <typename T>
  std::vector<T> list(std::int64_t n, const char* what) {
    if (n > std::ssize(body_)) fail_usage("body: byte {}: {}: {} is not possible", at_, what, n);
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
    const char* const from = take((bytes + 7) / 8 * 8, what);
    std::vector<T> values(static_cast<std::size_t>(n));
    if (bytes > 0) std::memcpy(values.data(), from, bytes);
    return values;
  }
  void expect_end() const {
    if (at_ != body_.size()) fail_usage("body: {} bytes behind the last request", body_.size() - at_);
  }

 private:
  const char* take(std::size_t bytes, const char* what) {
    if (bytes > body_.size() - at_)
      fail_usage("body: byte {}: {}: expected {} bytes, found {}", at_, what, bytes, body_.size() - at_);
    const char* const from = body_.data() + at_;
    at_ += bytes;
    return from;
  }

  std::string_view body_;
  std::size_t at_ = 0;
};

ScoreRequest read_request(Reader& body, Asked asked, std::size_t columns) {
  ScoreRequest request;
  request.asked = asked;
  request.user = body.number("user");
  if (const std::int64_t time = body.number("time"); time != std::numeric_limits<std::int64_t>::min())
    request.time = time;
  const std::int64_t events = body.number("events");
  if (events < -1) fail_usage("body: events: expected at least -1, found {}", events);
  const std::int64_t items = body.count("items");
  request.top = body.number("k");
  const std::int64_t flags = body.number("flags");
  if ((flags & ~(kExcludeSeen | kContexts | kEventContexts | kSeenActions)) != 0)
    fail_usage("body: flags: {} has unknown bits", flags);
  if (asked != Asked::top && (request.top != 0 || (flags & (kExcludeSeen | kSeenActions)) != 0))
    fail_usage("body: k and flags: k = {} and exclude seen are of /top alone: expected 0", request.top);
  request.exclude_seen = (flags & (kExcludeSeen | kSeenActions)) != 0;
  request.seen_actions = static_cast<std::uint8_t>((flags & kSeenActions) >> 8);
  if (events >= 0) {
    RequestEvents& of_user = request.events.emplace();
    of_user.item = body.list<std::int64_t>(events, "items of events");
    of_user.time = body.list<std::int64_t>(events, "times of events");
    of_user.action = body.list<std::uint8_t>(events, "actions of events");
    for (std::size_t c = 0; (flags & kEventContexts) != 0 && c < columns; ++c)
      of_user.context.push_back(body.list<std::int64_t>(events, "contexts of events"));
  }
  if ((flags & kContexts) != 0)
    request.context = body.list<std::int64_t>(static_cast<std::int64_t>(columns), "contexts");
  request.items = body.list<std::int64_t>(items, "items");
  return request;
}

void put(std::string& to, std::int64_t number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}
template <typename Values>
void put_list(std::string& to, const Values& values) {
  to.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(*values.data()));
  to.resize((to.size() + 7) / 8 * 8);
}

}  // namespace

std::vector<ScoreRequest> read_binary_requests(std::string_view text, Asked asked, std::size_t columns) {
  Reader body(text);
  if (body.number("format") != kRequests)
    fail_usage("body: expected the bytes HSTQ1 and three zeros at the beginning");
  const std::int64_t count = body.count("requests");
  std::vector<ScoreRequest> requests;
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      requests.push_back(read_request(body, asked, columns));
    } catch (const UsageError& e) {
      fail_request(requests.size(), e);
    }
  }
  body.expect_end();
  return requests;
}

std::string write_binary_answers(const std::vector<ScoreAnswer>& answers, std::string_view model) {
  std::string to;
  put(to, kAnswers);
  put(to, static_cast<std::int64_t>(answers.size()));
  put(to, static_cast<std::int64_t>(model.size()));
  put_list(to, model);
  for (const ScoreAnswer& answer : answers) {
    put(to, std::ssize(answer.items));
    put(to, std::ssize(answer.scores));
    put(to, answer.has_history ? 1 : 0);
    put_list(to, answer.items);
    put_list(to, answer.scores);
  }
  return to;
}

}  // namespace hstu
