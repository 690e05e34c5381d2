#include "hstu/serve/load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

// Of one connection.
struct Measured {
  std::vector<double> seconds;  // of answers with status 200
  std::int64_t refused = 0;     // other answers
  std::int64_t lost = 0;        // no answer
};

class Client {
 public:
  explicit Client(const LoadOptions& options) : options_(options), stream_(io_) {}

  // The status; throws boost's system_error if there is no answer.
  unsigned send(const std::string& body) {
    if (!connected_) connect();
    connected_ = false;  // unless the answer says otherwise
    http::request<http::string_body> request{http::verb::post, options_.path, 11, body};
    request.set(http::field::host, options_.host);
    request.set(http::field::content_type, "application/json");
    request.prepare_payload();
    http::write(stream_, request);
    http::response<http::string_body> response;
    http::read(stream_, buffer_, response);
    connected_ = response.keep_alive();
    return response.result_int();
  }
  void connect() {
    buffer_.clear();
    stream_.close();
    stream_.connect({asio::ip::make_address(options_.host), static_cast<unsigned short>(options_.port)});
    stream_.socket().set_option(asio::ip::tcp::no_delay(true));
    connected_ = true;
  }

 private:
  const LoadOptions& options_;
  asio::io_context io_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  bool connected_ = false;
};

std::vector<std::string> lines_of(const Path& file) {
  std::vector<std::string> lines;
  for (std::string& line : split(read_file(file), '\n'))
    if (!line.empty()) lines.push_back(std::move(line));
  check(!lines.empty(), "{}: there is no line with a request", file.string());
  return lines;
}

double quantile(const std::vector<double>& ascending, double q) {
  if (ascending.empty()) return 0;
  const auto last = static_cast<double>(ascending.size() - 1);
  return ascending[static_cast<std::size_t>(std::ceil(q * last))];
}

void run_connection(const LoadOptions& options, const std::vector<std::string>& bodies,
                    Clock::time_point start, std::atomic<std::int64_t>& next, Measured& result) {
  Client client(options);
  const auto end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  while (true) {
    const std::int64_t i = next++;
    Clock::time_point due = Clock::now();
    if (options.rate > 0)
      due = start + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(static_cast<double>(i) / options.rate));
    if (due >= end) return;
    std::this_thread::sleep_until(due);
    try {
      const unsigned status = client.send(bodies[static_cast<std::size_t>(i) % bodies.size()]);
      if (status == 200) {
        result.seconds.push_back(seconds_since(due));
      } else {
        ++result.refused;
      }
    } catch (const boost::system::system_error&) {
      ++result.lost;
    }
  }
}

}  // namespace

Json measure_server(const LoadOptions& options) {
  const std::vector<std::string> bodies = lines_of(options.requests);
  try {
    Client(options).connect();
  } catch (const boost::system::system_error& e) {
    fail("cannot reach {} port {}: {}", options.host, options.port, e.code().message());
  }
  std::atomic<std::int64_t> next = 0;
  std::vector<Measured> measured(static_cast<std::size_t>(options.connections));
  std::vector<std::thread> threads;
  const Clock::time_point start = Clock::now();
  for (Measured& of_connection : measured)
    threads.emplace_back([&] { run_connection(options, bodies, start, next, of_connection); });
  for (std::thread& thread : threads) thread.join();
  const double seconds = seconds_since(start);
  Measured all;
  for (const Measured& one : measured) {
    all.seconds.insert(all.seconds.end(), one.seconds.begin(), one.seconds.end());
    all.refused += one.refused;
    all.lost += one.lost;
  }
  std::sort(all.seconds.begin(), all.seconds.end());
  const auto milliseconds = [&](double q) { return 1e3 * quantile(all.seconds, q); };
  return {{"answers", all.seconds.size()},
          {"refused", all.refused},
          {"lost", all.lost},
          {"seconds", seconds},
          {"connections", options.connections},
          {"rate_per_s", options.rate},
          {"answers_per_s", static_cast<double>(all.seconds.size()) / seconds},
          {"p50_ms", milliseconds(0.5)},
          {"p90_ms", milliseconds(0.9)},
          {"p99_ms", milliseconds(0.99)},
          {"max_ms", milliseconds(1)}};
}

}  // namespace hstu
