#include "hstu/report/tensorboard.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/report/event_record.h"

namespace hstu {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

void remove_event_files(const Path& run) {
  std::vector<Path> old;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    if (entry.path().filename().string().starts_with(kPrefix)) old.push_back(entry.path());
  }
  std::error_code ignored;
  for (const Path& path : old) std::filesystem::remove(path, ignored);
}

using Scalars = std::vector<std::pair<std::string, double>>;

void add_scalars(const Json& value, const std::string& tag, Scalars& scalars) {
  if (value.is_number()) {
    scalars.emplace_back(tag, value.get<double>());
  } else if (value.is_object()) {
    for (const auto& [key, inner] : value.items())
      add_scalars(inner, fmt::format("{}/{}", tag, key), scalars);
  }
}

}  // namespace

TensorboardWriter::TensorboardWriter(const Path& run, std::span<const Json> lines) {
  remove_event_files(run);
  const double start = lines.empty() ? 0 : lines.front().value("time_s", 0.0);
  // TensorBoard reads the files of a folder in the order of their names, so the name begins with the time.
  path_ = run / fmt::format("{}{:010}.hstu", kPrefix, static_cast<std::int64_t>(start));
  file_.reset(std::fopen(path_.c_str(), "wb"));
  append(framed(version_event(start)));
  for (const Json& line : lines) write(line);
}

void TensorboardWriter::write(const Json& line) {
  if (!line.contains("step") || !line["step"].is_number_integer()) return;
  const std::string event = line.value("event", "run");
  Scalars scalars;
  for (const auto& [key, value] : line.items()) {
    if (key != "step" && key != "time_s") add_scalars(value, fmt::format("{}/{}", event, key), scalars);
  }
  if (scalars.empty()) return;
  append(framed(scalars_event(line.value("time_s", 0.0), line["step"].get<std::int64_t>(), scalars)));
}

void TensorboardWriter::append(const std::string& record) {
  if (file_ != nullptr && std::fwrite(record.data(), 1, record.size(), file_.get()) == record.size() &&
      std::fflush(file_.get()) == 0) {
    return;
  }
  if (!path_.empty()) {
    print_note("{}: cannot be written ({}); the run continues without TensorBoard's copy of its metrics\n",
               path_.string(), std::strerror(errno));
  }
  path_.clear();  // reported once
  file_.reset();
}

}  // namespace hstu
