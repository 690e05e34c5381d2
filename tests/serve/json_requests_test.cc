#include "hstu/serve/json_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/dataset/names_writer.h"
#include "hstu/dataset/writer.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::ElementsAre;

// A dataset of no events with a context column of texts.
Dataset with_places(const Path& folder) {
  Manifest description;
  description.name = "small";
  description.actions = {{"like", 1}};
  description.label = "like";
  description.pools = {"like"};
  description.context = {"place"};
  Manifest manifest = DatasetWriter(folder, description).finish({});
  write_code_names(folder, "context_place", std::vector<std::string>{"home", "train"}, manifest);
  manifest.id = dataset_id(manifest.columns);
  write_file(folder / kManifestFile, manifest_to_json(manifest));
  return Dataset(folder);
}

TEST(JsonRequests, CountTextsThatTheDatasetDoesNotHave) {
  const Dataset dataset = with_places(temporary_folder());
  const RequestForm form(dataset, {true}, {true});
  const auto read = [&](const char* body) { return read_json_requests(body, Asked::scores, form, {"like"}); };
  const RequestBody one = read(
      R"({"items": [1], "context": {"place": "Train"}, "events": {"item": [1, 2, 3], "time": [1, 2, 3],
          "action": [1, 1, 1], "place": ["home", "moon", ""]}})");
  EXPECT_EQ(one.unknown_texts, 2);
  EXPECT_THAT(one.requests[0].context, ElementsAre(0));
  EXPECT_THAT(one.requests[0].events->context, ElementsAre(ElementsAre(1, 0, 0)));
  EXPECT_EQ(read(R"({"requests": [{"items": [1], "context": {"place": "moon"}},
                                  {"items": [1], "context": {"place": "train"}},
                                  {"items": [1], "context": {"place": "sun"}}]})")
                .unknown_texts,
            2);
  EXPECT_THROW(read(R"({"items": [1], "context": {"place": null}})"), UsageError);
}

}  // namespace
}  // namespace hstu
