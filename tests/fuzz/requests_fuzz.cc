// The tables that predict reads: requests, users, a catalogue, events. Rejected, or of the form that scoring
// expects.
#include <array>
#include <set>

#include "fuzz/harness.h"
#include "hstu/dataset/names_writer.h"
#include "hstu/dataset/writer.h"
#include "hstu/predict/event_file.h"
#include "hstu/predict/request_reader.h"
#include "hstu/predict/user_reader.h"

namespace {

using namespace hstu;

// With a context column of numbers and one of texts; ids are hashes of texts or not.
const Dataset& dataset(bool hashed) {
  static const std::array<Path, 2> folders = [] {
    const auto make = [](bool texts) {
      return fuzz::made_folder(texts ? "texts" : "numbers", [&](const Path& folder) {
        Manifest description;
        description.name = "small";
        description.actions = {{"like", 1}, {"skip", 4}};
        description.label = "like";
        description.pools = {"like"};
        description.context = {"worth", "place"};
        Manifest manifest = DatasetWriter(folder, description).finish({});
        write_code_names(folder, "context_place", std::vector<std::string>{"home", "a,b"}, manifest);
        if (texts) manifest.hashed = {{"user", 0}, {"item", 0}};
        manifest.id = dataset_id(manifest.columns);
        write_file(folder / kManifestFile, manifest_to_json(manifest));
      });
    };
    return std::array{make(false), make(true)};
  }();
  static const std::array<Dataset, 2> datasets{Dataset(folders[0]), Dataset(folders[1])};
  return datasets[hashed ? 1 : 0];
}

void expect_texts(const Items& items, bool texts) {
  require(!items.ids.empty() && items.texts.size() == (texts ? items.ids.size() : 0),
          "{} items with {} texts", items.ids.size(), items.texts.size());
  for (std::size_t i = 0; i < items.texts.size(); ++i)
    require(items.ids[i] == id_of_text(items.texts[i]), "an id that is not its text's");
}

void read_requests(const Path& file, const ColumnNames& names, const std::vector<bool>& needed, bool texts,
                   bool catalogue) {
  RequestReader reader(file, names, dataset(texts), needed, catalogue);
  Request request;
  for (std::int64_t number = 1; reader.next(request); ++number) {
    require(request.number == number && request.context.size() == needed.size(), "not a request");
    if (!catalogue) expect_texts(request.items, texts);
    require(!texts || request.user == id_of_text(request.user_text), "a user that is not the text's");
    require(request.context[0] == 0 || needed[0], "a column that was not asked for");
    require(request.context[1] >= 0 && request.context[1] <= (needed[1] ? 2 : 0), "a code of no text");
  }
}

void read_users(const Path& file, const ColumnNames& names, bool texts) {
  UserReader reader(file, names, dataset(texts), true);
  const bool timed = CsvReader{ByteSource(file)}.has_column(names.time);
  UserRequest request;
  while (reader.next(request)) {
    require(request.time.has_value() == timed, "a time that is not the column's");
    require(!texts || request.user == id_of_text(request.user_text), "a user that is not the text's");
  }
}

}  // namespace

// Input: a byte that chooses table and options, and the table.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned choice = data[0];
  const bool texts = (choice & 1) != 0;
  const std::vector<bool> needed{(choice & 2) != 0, (choice & 4) != 0};
  ColumnNames names;
  names.time_step = (choice & 8) != 0 ? TimeStep::microseconds : TimeStep::seconds;
  return fuzz::accept_or_refuse([&] {
    const Path folder = fuzz::fresh_folder();
    const Path file = fuzz::plain_file(folder / "t.csv", fuzz::text_of(data + 1, size - 1));
    if ((choice & 64) != 0) return read_users(file, names, texts);
    switch (choice >> 4 & 3) {
      case 0:
      case 1:
        return read_requests(file, names, needed, texts, (choice >> 4 & 1) != 0);
      case 2: {
        const Items items = read_catalogue(file, names, texts);
        expect_texts(items, texts);
        require(std::set(items.ids.begin(), items.ids.end()).size() == items.ids.size(), "an item twice");
        return;
      }
      default: {
        std::filesystem::create_directories(folder / "ds");
        write_events(file, names, dataset(texts), needed, folder / "ds");
        CsvReader rows{ByteSource(file)};
        while (rows.next()) {
        }
        require(Dataset(folder / "ds").events() == rows.rows(), "an event was lost or made up");
      }
    }
  });
}
