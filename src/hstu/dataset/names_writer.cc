#include "hstu/dataset/names_writer.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <queue>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/dataset/column_writer.h"
#include "hstu/dataset/names.h"

namespace hstu {
namespace {

using Width = IntegerColumn::Width;
using Name = std::pair<std::int64_t, std::string>;

constexpr std::int64_t kNodeBytes = 96;                     // of a name in memory, besides long texts: about
constexpr std::size_t kBufferBytes = std::size_t{1} << 16;  // of a run that is read

// The three columns of names that arrive by ascending id.
class NamesWriter {
 public:
  NamesWriter(const Path& dataset, const std::string& of)
      : of_(of),
        ids_(dataset / name_ids_file(of), Width::k8Bytes),
        offsets_(dataset / name_offsets_file(of), Width::k8Bytes),
        text_(dataset / names_file(of), Width::k1Byte) {}

  void append(std::int64_t id, std::string_view name) {
    const std::int64_t begin = text_.count();
    ids_.append(std::span(&id, 1));
    offsets_.append(std::span(&begin, 1));
    text_.append(std::span(reinterpret_cast<const std::uint8_t*>(name.data()), name.size()));
  }

  void close(Manifest& manifest) {
    const std::int64_t end = text_.count();
    offsets_.append(std::span(&end, 1));
    manifest.columns[name_ids_file(of_)] = ids_.close();
    manifest.columns[name_offsets_file(of_)] = offsets_.close();
    manifest.columns[names_file(of_)] = text_.close();
    manifest.names.push_back(of_);
  }

 private:
  std::string of_;
  ColumnWriter ids_, offsets_, text_;
};

// Names of a run, one by one.
class NameRun {
 public:
  explicit NameRun(Path path) : path_(std::move(path)), buffer_(kBufferBytes) {
    input_.rdbuf()->pubsetbuf(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    input_.open(path_, std::ios::binary);
    check(input_.is_open(), "cannot open {}: the limit on open files may be too low (ulimit -n)",
          path_.string());
  }

  bool next(Name& name) {
    if (input_.peek() == std::ifstream::traits_type::eof()) return false;
    std::uint64_t size = 0;
    read(&name.first, sizeof name.first);
    read(&size, sizeof size);
    name.second.resize(size);
    read(name.second.data(), size);
    return true;
  }

 private:
  void read(void* bytes, std::size_t size) {
    input_.read(static_cast<char*>(bytes), static_cast<std::streamsize>(size));
    check(static_cast<std::size_t>(input_.gcount()) == size, "cannot read {}", path_.string());
  }

  Path path_;
  std::vector<char> buffer_;
  std::ifstream input_;
};

}  // namespace

NameCollector::NameCollector(Path folder, std::int64_t memory)
    : folder_(std::move(folder)), memory_(memory) {}

NameCollector::~NameCollector() {
  std::error_code ignored;
  if (!runs_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void NameCollector::add(std::int64_t id, std::string_view name) {
  const auto [entry, added] = names_.try_emplace(id, name);
  if (!added && (entry->second == name || !collided_.emplace(id, name).second)) return;
  bytes_ += kNodeBytes + static_cast<std::int64_t>(name.size());
  if (bytes_ >= memory_) spill();
}

std::vector<Name> NameCollector::take_sorted() {
  std::vector<Name> sorted(collided_.begin(), collided_.end());
  sorted.reserve(sorted.size() + names_.size());
  for (auto& [id, name] : names_) sorted.emplace_back(id, std::move(name));
  std::sort(sorted.begin(), sorted.end());
  names_.clear();
  collided_.clear();
  bytes_ = 0;
  return sorted;
}

void NameCollector::spill() {
  std::filesystem::create_directories(folder_);
  runs_.push_back(folder_ / fmt::format("names-{}", runs_.size()));
  OutputFile file(runs_.back());
  for (const auto& [id, name] : take_sorted()) {
    const std::uint64_t size = name.size();
    file.write(&id, sizeof id);
    file.write(&size, sizeof size);
    file.write(name);
  }
  file.flush();
}

std::int64_t NameCollector::write(const Path& dataset, const std::string& of, Manifest& manifest) {
  NamesWriter writer(dataset, of);
  std::vector<Name> rest = take_sorted();
  std::size_t rest_at = 0;
  std::vector<std::unique_ptr<NameRun>> runs;
  for (const Path& path : runs_) runs.push_back(std::make_unique<NameRun>(path));

  // The smallest name of every run, and of those that never left memory (the run after the last).
  using Head = std::pair<Name, std::size_t>;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  const auto push_next = [&](std::size_t run) {
    Name name;
    if (run < runs.size()) {
      if (runs[run]->next(name)) heads.emplace(std::move(name), run);
    } else if (rest_at < rest.size()) {
      heads.emplace(std::move(rest[rest_at++]), run);
    }
  };
  for (std::size_t run = 0; run <= runs.size(); ++run) push_next(run);
  std::int64_t collisions = 0;
  std::optional<Name> last;
  while (!heads.empty()) {
    const auto [name, run] = heads.top();
    heads.pop();
    push_next(run);
    if (last == name) continue;
    if (last && last->first == name.first) {
      ++collisions;
    } else {
      writer.append(name.first, name.second);
    }
    last = name;
  }
  writer.close(manifest);
  return collisions;
}

void write_code_names(const Path& dataset, const std::string& of, std::span<const std::string> names,
                      Manifest& manifest) {
  NamesWriter writer(dataset, of);
  for (std::size_t row = 0; row < names.size(); ++row)
    writer.append(static_cast<std::int64_t>(row) + 1, names[row]);
  writer.close(manifest);
  std::vector<std::int64_t> order(names.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return names[static_cast<std::size_t>(a)] < names[static_cast<std::size_t>(b)];
  });
  ColumnWriter column(dataset / name_order_file(of), Width::k1Byte);
  column.append(order);
  manifest.columns[name_order_file(of)] = column.close();
}

}  // namespace hstu
