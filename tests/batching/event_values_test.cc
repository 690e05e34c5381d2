// Samples with a label at several events: what they hold, how their labels are counted, which anchors train.
#include "hstu/batching/event_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/batching/anchors.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/dataset/names_writer.h"
#include "temporary_folder.h"
#include "write_dataset.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two users, six and three events. Every second event of user 0 is not rankable.
class Events : public ::testing::Test {
 protected:
  Events() {
    Manifest description;
    description.name = "events";
    description.actions = {{"bought", 1}, {"viewed", 2}};
    description.label = "bought";
    description.pools = {"bought", "viewed"};
    description.context = {"rating"};
    EventTable table;
    table.user.append(std::vector<std::int64_t>{3, 3, 3, 3, 3, 3, 9, 9, 9});
    table.time.append(std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 1, 2, 3});
    table.item.append(std::vector<std::int64_t>{5, 6, 7, 5, 6, 7, 5, 6, 7});
    table.action = {0x81, 2, 0x83, 1, 0x82, 3, 0x81, 0x82, 0x83};
    table.context.emplace_back(IntegerColumn::Width::k4Bytes);
    table.context[0].append(std::vector<std::int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3});
    std::filesystem::create_directories(folder_);
    write_dataset(folder_, description, table);
    options_.history_length = 3;
    options_.strategy = HistoryStrategy::last_n;
    options_.window_seconds = 0;
    options_.events.wanted = true;
    options_.events.labels = {"bought", "viewed"};
    options_.events.label_end = 4;
    options_.events.candidates = 0;
  }
  Samples build(std::vector<std::int64_t> positions) const {
    const Dataset dataset(folder_);
    const SampleBuilder builder(dataset, options_);
    SampleScratch scratch = builder.scratch();
    Samples samples = builder.build(positions);
    std::int64_t labels = 0;
    std::size_t event = 0;
    for (std::size_t b = 0; b < positions.size(); ++b) {
      event += static_cast<std::size_t>(samples.history_offsets[b + 1] - samples.history_offsets[b] + 1);
      for (std::size_t e = event - static_cast<std::size_t>(samples.candidates[b]); e < event; ++e)
        labels += samples.event_rankable[e];
    }
    EXPECT_EQ(builder.examples(positions, scratch), labels);
    return samples;
  }
  const Path folder_ = temporary_folder() / "data";
  DataOptions options_;
};

TEST_F(Events, HaveTheirActionsAndBits) {
  const Samples samples = build({4, 7});  // histories 1 2 3 and 6
  EXPECT_THAT(samples.event_action, ElementsAre(2, 3, 1, 2, 1, 2));
  EXPECT_THAT(samples.event_label, ElementsAre(2, 3, 1, 2, 1, 2));
  EXPECT_THAT(samples.event_rankable, ElementsAre(0, 1, 0, 1, 1, 1));
  EXPECT_THAT(samples.candidates, ElementsAre(4, 2));
  options_.events.labels = {"viewed"};
  options_.events.label_end = 2;
  options_.events.candidates = 3;
  const Samples one = build({4, 7});
  EXPECT_THAT(one.event_label, ElementsAre(1, 1, 0, 1, 0, 1));
  EXPECT_THAT(one.candidates, ElementsAre(3, 2));
}

TEST_F(Events, HaveTheIndexOfAClass) {
  options_.events.one_of = true;
  options_.events.labels = {"viewed", "bought"};
  EXPECT_THAT(build({4}).event_label, ElementsAre(0, 0, 1, 0));
  options_.events.labels = {"bought"};
  try {
    build({4});
    FAIL() << "an event has no class";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("event 1 has none of the actions"));
  }
}

TEST_F(Events, ReadColumnsOfTheDataset) {
  options_.events.action_column = options_.events.label_column = "rating";
  options_.events.label_end = 5;
  const Samples samples = build({4});
  EXPECT_THAT(samples.event_action, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(samples.event_label, ElementsAre(1, 2, 3, 4));
  options_.events.label_end = 4;
  try {
    build({4});
    FAIL() << "a label is out of range";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the label of event 4 is 4: expected 0 to 3"));
  }
  options_.events.label_column = "ratin";
  EXPECT_THROW(build({4}), UsageError);
}

// The codes 1, 2, ... follow the order of the log: a class is the text, whatever its code.
TEST_F(Events, HaveTheClassesOfTexts) {
  Manifest manifest = read_manifest(folder_);
  const std::vector<std::string> texts = {"good", "bad", "okay", "never"};
  write_code_names(folder_, "context_rating", texts, manifest);
  manifest.id = dataset_id(manifest.columns);
  write_file(folder_ / kManifestFile, manifest_to_json(manifest));
  options_.events.label_column = "rating";
  options_.events.one_of = true;
  options_.events.labels = {"bad", "never", "good", "null", "okay"};
  options_.events.label_end = 5;
  EXPECT_THAT(build({2, 4}).event_label, ElementsAre(3, 2, 0, 2, 0, 4, 1));
  const auto refusal = [&] {
    try {
      build({2});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  options_.events.labels = {"bad", "good", "okay", "never", "else"};
  EXPECT_THAT(refusal(), HasSubstr("event 0 has no text, and model.labels has no class \"null\""));
  options_.events.labels = {"1", "2", "3", "4", "5"};
  EXPECT_THAT(refusal(), HasSubstr("contains \"good\", which is none of 1, 2, 3, 4, 5"));
  options_.events.one_of = false;
  EXPECT_THAT(refusal(), HasSubstr("bits of integers: set model.head"));
}

TEST_F(Events, AnchorsAreThinnedFromTheLastOfEachUser) {
  const Dataset dataset(folder_);
  const auto training = [&](std::int64_t stride) {
    options_.anchor_stride = stride;
    return find_anchors(dataset, options_, {}).training.first(100);
  };
  EXPECT_THAT(training(1), ElementsAre(0, 2, 4, 6, 7, 8));
  EXPECT_THAT(training(2), ElementsAre(0, 4, 6, 8));
  EXPECT_THAT(training(3), ElementsAre(4, 8));
  EXPECT_THAT(training(0), ElementsAre(4, 8));
}

}  // namespace
}  // namespace hstu
