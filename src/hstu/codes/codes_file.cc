#include "hstu/codes/codes_file.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/json_text.h"
#include "hstu/base/npy.h"
#include "hstu/base/version.h"
#include "hstu/checkpoint/safetensors.h"

namespace hstu {
namespace {

constexpr const char *kFormat = "hstu-codes", *kManifest = "manifest.json", *kIds = "ids.i64.npy",
                     *kCodes = "codes.i32.npy";
constexpr int kVersion = 1;

std::string checksum_of(const std::vector<std::int32_t>& codes) {
  return checksum(std::as_bytes(std::span(codes)));
}

// Every level has as many codes as the largest number of any level asks for.
std::vector<std::int64_t> sizes_of(const std::vector<std::int32_t>& codes, std::int64_t levels) {
  const std::int32_t largest = codes.empty() ? 0 : *std::max_element(codes.begin(), codes.end());
  return std::vector<std::int64_t>(static_cast<std::size_t>(levels), static_cast<std::int64_t>(largest) + 1);
}

// What was appended to a folder, from 1.
Path appended(const Path& folder, std::size_t number) {
  return folder / fmt::format("appended_{:04}", number);
}

ItemCodes read_part(const Path& folder) {
  const Path path = folder / kManifest;
  const Json manifest = parse_json(read_file(path), path);
  const auto say = [&](const char* field) {
    return fmt::format("{}: expected \"{}\" of a folder that hstu tokenize wrote", path.string(), field);
  };
  check(manifest.is_object() && manifest.value("format", Json()) == kFormat, "{}", say("format"));
  check(manifest.value("version", Json()) == kVersion, "{}: expected version {}", path.string(), kVersion);
  ItemCodes codes;
  check(manifest.contains("sizes") && manifest["sizes"].is_array(), "{}", say("sizes"));
  for (const Json& size : manifest["sizes"]) {
    check(size.is_number_integer(), "{}", say("sizes"));
    codes.sizes.push_back(size.get<std::int64_t>());
  }
  const auto ids = NpyColumn<std::int64_t>(folder / kIds);
  codes.items.assign(ids.values().begin(), ids.values().end());
  const MappedFile file(folder / kCodes);
  const NpyHeader header = parse_npy_header(file.bytes(), folder / kCodes);
  check(header.type == npy_type<std::int32_t>() && header.shape.size() == 2,
        "{}: expected (V, L) numbers of type {}", (folder / kCodes).string(), npy_type<std::int32_t>());
  const auto* const data = reinterpret_cast<const std::int32_t*>(file.bytes().data() + header.data_offset);
  codes.codes.assign(data, data + header.count());
  codes.check_valid(folder.string());
  check(manifest.value("checksum", Json()) == checksum_of(codes.codes), "{}: the codes were altered",
        (folder / kCodes).string());
  return codes;
}

// Codes of all items, sorted by id.
ItemCodes merged(const ItemCodes& a, const ItemCodes& b, const std::string& source) {
  check(a.sizes == b.sizes, "{}: expected as many codes of each level as there are", source);
  ItemCodes all{.sizes = a.sizes, .items = {}, .codes = {}};
  for (std::size_t i = 0, j = 0; i < a.items.size() || j < b.items.size();) {
    const bool first = j == b.items.size() || (i < a.items.size() && a.items[i] < b.items[j]);
    const ItemCodes& from = first ? a : b;
    std::size_t& at = first ? i : j;
    const auto tuple = from.tuple(static_cast<std::int64_t>(at));
    all.items.push_back(from.items[at++]);
    all.codes.insert(all.codes.end(), tuple.begin(), tuple.end());
  }
  all.check_valid(source);
  return all;
}

ItemCodes read_folder(const Path& folder) {
  ItemCodes codes = read_part(folder);
  for (std::size_t n = 1; std::filesystem::exists(appended(folder, n)); ++n) {
    std::vector<std::string> earlier = std::move(codes.earlier);
    earlier.push_back(codes_checksum(codes));
    codes = merged(codes, read_part(appended(folder, n)), appended(folder, n).string());
    codes.earlier = std::move(earlier);
  }
  return codes;
}

template <typename Number>
bool read_whole(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// 12 or "<a_12>": the letter of level 1 is a.
std::int32_t code_of(const Json& value, std::size_t level, const std::string& place) {
  std::int64_t code = -1;
  if (value.is_number_integer()) {
    code = value.get<std::int64_t>();
  } else if (value.is_string()) {
    const std::string text = value.get<std::string>();
    const std::string begin = {'<', static_cast<char>('a' + static_cast<char>(level)), '_'};
    const bool fits = text.size() > begin.size() + 1 && text.starts_with(begin) && text.ends_with(">");
    if (!fits || !read_whole(std::string_view(text).substr(3, text.size() - 4), code)) code = -1;
  }
  check(code >= 0 && code < std::numeric_limits<std::int32_t>::max(),
        "{}: expected a code from 0, or a text such as \"<{}_12>\" at level {}, found {}", place,
        static_cast<char>('a' + static_cast<char>(level)), level + 1, value.dump());
  return static_cast<std::int32_t>(code);
}

// Sorts by id.
ItemCodes from_rows(std::vector<std::pair<std::int64_t, std::vector<std::int32_t>>> rows,
                    const std::string& source) {
  std::sort(rows.begin(), rows.end());
  ItemCodes codes;
  check(!rows.empty(), "{}: no item has codes", source);
  const std::size_t levels = rows.front().second.size();
  for (const auto& [item, tuple] : rows) {
    check(tuple.size() == levels, "{}: item {} has {} codes, others have {}", source, item, tuple.size(),
          levels);
    codes.items.push_back(item);
    codes.codes.insert(codes.codes.end(), tuple.begin(), tuple.end());
  }
  codes.sizes = sizes_of(codes.codes, static_cast<std::int64_t>(levels));
  codes.check_valid(source);
  return codes;
}

std::int64_t shifted(std::int64_t item, std::int64_t first_item, const std::string& source) {
  std::int64_t id = 0;
  check(!__builtin_add_overflow(item, first_item, &id) && id >= 0,
        "{}: item {} and the id {} of the first item give no id", source, item, first_item);
  return id;
}

ItemCodes read_index(const Path& path, std::int64_t first_item) {
  const Json index = parse_json(read_file(path), path);
  const std::string source = path.string();
  check(index.is_object(), "{}: expected an object with the codes of each item by its id", source);
  std::vector<std::pair<std::int64_t, std::vector<std::int32_t>>> rows;
  for (const auto& [key, tuple] : index.items()) {
    std::int64_t item = -1;
    check(read_whole(std::string_view(key), item) && item >= 0,
          "{}: expected ids of items from 0, found \"{}\"", source, key);
    const std::string place = fmt::format("{}: item {}", source, key);
    check(tuple.is_array() && tuple.size() <= 16, "{}: expected a list of at most 16 codes", place);
    std::vector<std::int32_t> codes;
    for (std::size_t l = 0; l < tuple.size(); ++l) codes.push_back(code_of(tuple[l], l, place));
    rows.emplace_back(shifted(item, first_item, source), std::move(codes));
  }
  return from_rows(std::move(rows), source);
}

// data (L, V).
template <typename Integer>
ItemCodes from_tensor(const Integer* data, const std::vector<std::int64_t>& shape, std::int64_t first_item,
                      const std::string& source) {
  check(shape.size() == 2 && shape[0] <= 16, "{}: expected a tensor (levels, items) of at most 16 levels",
        source);
  const std::int64_t levels = shape[0], items = shape[1];
  ItemCodes codes;
  for (std::int64_t i = 0; i < items; ++i) {
    codes.items.push_back(shifted(i, first_item, source));
    for (std::int64_t l = 0; l < levels; ++l) {
      const auto code = static_cast<std::int64_t>(data[l * items + i]);
      check(code >= 0 && code < std::numeric_limits<std::int32_t>::max(),
            "{}: item {}: expected codes from 0 at level {}, found {}", source, i, l + 1, code);
      codes.codes.push_back(static_cast<std::int32_t>(code));
    }
  }
  codes.sizes = sizes_of(codes.codes, levels);
  codes.check_valid(source);
  return codes;
}

ItemCodes read_npy(const Path& path, std::int64_t first_item) {
  const MappedFile file(path);
  const NpyHeader header = parse_npy_header(file.bytes(), path);
  const std::byte* const data = file.bytes().data() + header.data_offset;
  const std::string source = path.string();
  if (header.type == npy_type<std::int64_t>())
    return from_tensor(reinterpret_cast<const std::int64_t*>(data), header.shape, first_item, source);
  if (header.type == npy_type<std::int32_t>())
    return from_tensor(reinterpret_cast<const std::int32_t*>(data), header.shape, first_item, source);
  fail("{}: expected integers of type {} or {}, found {}", source, npy_type<std::int64_t>(),
       npy_type<std::int32_t>(), header.type);
}

ItemCodes read_safetensors(const Path& path, std::int64_t first_item) {
  const SafetensorsFile file(path);
  check(file.tensors().size() == 1, "{}: expected one tensor (levels, items), found {}", path.string(),
        file.tensors().size());
  const TensorSpec& tensor = file.tensors().front();
  const std::vector<std::int64_t> shape(tensor.shape.begin(), tensor.shape.end());
  if (tensor.dtype == DType::i64)
    return from_tensor(file.values<std::int64_t>(tensor.name, tensor.shape).data(), shape, first_item,
                       path.string());
  check(tensor.dtype == DType::i32, "{}: expected integers of 64 or 32 bits", path.string());
  return from_tensor(file.values<std::int32_t>(tensor.name, tensor.shape).data(), shape, first_item,
                     path.string());
}

}  // namespace

ItemCodes read_codes(const Path& path, std::int64_t first_item) {
  if (std::filesystem::is_directory(path)) {
    if (first_item != 0)
      fail_usage("{}: a folder of codes has the ids of items: leave the id of the first item out",
                 path.string());
    return read_folder(path);
  }
  if (!std::filesystem::exists(path)) fail_usage("{}: there are no codes of items", path.string());
  const std::string ending = path.extension().string();
  if (ending == ".json") return read_index(path, first_item);
  if (ending == ".npy") return read_npy(path, first_item);
  if (ending == ".safetensors") return read_safetensors(path, first_item);
  fail_usage(
      "{}: expected a folder that hstu tokenize wrote, an index in .json, or a tensor (levels, items) in "
      ".npy "
      "or .safetensors",
      path.string());
}

std::string codes_checksum(const ItemCodes& codes) {
  Checksum sum;
  const std::int64_t levels = codes.levels();
  sum.add(&levels, sizeof levels);
  sum.add(codes.sizes.data(), codes.sizes.size() * sizeof(std::int64_t));
  sum.add(codes.items.data(), codes.items.size() * sizeof(std::int64_t));
  sum.add(codes.codes.data(), codes.codes.size() * sizeof(std::int32_t));
  return sum.text();
}

void write_codes(const Path& folder, const ItemCodes& codes, const Json& method) {
  codes.check_valid(folder.string());
  write_npy(folder / kIds, codes.items);
  OutputFile file(folder / kCodes);
  const std::int64_t shape[] = {codes.size(), codes.levels()};
  file.write(npy_header(npy_type<std::int32_t>(), shape));
  file.write(codes.codes.data(), codes.codes.size() * sizeof(std::int32_t));
  file.close();
  const Json manifest{{"format", kFormat},
                      {"version", kVersion},
                      {"program", version()},
                      {"sizes", codes.sizes},
                      {"checksum", checksum_of(codes.codes)},
                      {"method", method},
                      {"statistics", to_json(code_statistics(codes))}};
  write_file(folder / kManifest, manifest.dump(2) + "\n");
}

void append_codes(const Path& folder, const ItemCodes& codes, const Json& method) {
  const ItemCodes known = read_folder(folder);
  merged(known, codes, folder.string());
  StagedFolder staged(appended(folder, known.earlier.size() + 1));
  write_codes(staged.path(), codes, method);
  staged.commit();
}

Json codes_method(const Path& folder) {
  const Json manifest = parse_json(read_file(folder / kManifest), folder / kManifest);
  return manifest.is_object() ? manifest.value("method", Json::object()) : Json::object();
}

}  // namespace hstu
