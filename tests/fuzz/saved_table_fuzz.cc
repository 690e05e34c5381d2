// The section of a table in a checkpoint whose checksums are right: rejected, or rows in their range.
#include <nlohmann/json.hpp>

#include "fuzz/harness.h"
#include "hstu/base/checksum.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/embedding/table_section.h"

namespace {

using namespace hstu;

TableSet tables() {
  return TableSet(
      {{.name = "t", .rows = 40, .dim = 2, .limits = {.capacity = 9, .evict = Evict::lfu, .admit_after = 2}}},
      RowOptimizer{}, 1);
}

// The description that a table without rows would save.
const nlohmann::json& own_description() {
  static const nlohmann::json description = [] {
    TableSet empty = tables();
    CheckpointManifest manifest{.state = {}, .tables = nlohmann::json::array(), .files = {}};
    SectionWriter writer(fuzz::fresh_folder(), "tables/t", manifest);
    table_sections(empty)[0].save(writer);
    return manifest.tables[0];
  }();
  return description;
}

}  // namespace

// Input: changes of the description as JSON (RFC 7396), a zero byte, and the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  nlohmann::json description = own_description();
  const auto changes = nlohmann::json::parse(fuzz::take_part(rest), nullptr, false);
  if (changes.is_object()) description.merge_patch(changes);
  return fuzz::accept_or_refuse([&] {
    const Path folder = fuzz::fresh_folder();
    std::filesystem::create_directories(folder / "tables");
    fuzz::plain_file(folder / section_file("tables/t"), rest);
    CheckpointManifest manifest{
        .state = nlohmann::json::object(), .tables = nlohmann::json::array({description}), .files = {}};
    manifest.files[section_file("tables/t")] = {rest.size(), checksum(rest)};
    write_checkpoint_manifest(folder, manifest);
    TableSet set = tables();
    Checkpoint(folder).load(table_sections(set));
    std::int64_t last = -1;
    for (const auto& place : set[0].places_by_id()) {
      require(place.id > last && place.id < 40, "a row that is not the table's");
      last = place.id;
      float values[2], state[1];
      set[0].read(std::span(&place, 1), values, state);
    }
    for (const std::int64_t count : set[0].waiting().by_id().counts)
      require(count == 1, "an id that waits with a count of {}", count);
    set[0].end_step({}, 0, one_rank());  // as a step without rows ends
  });
}
