#include "hstu/dataset/names.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/names_writer.h"
#include "temporary_folder.h"
#include "write_dataset.h"

namespace hstu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kMuchMemory = 1 << 20, kLittleMemory = 1 << 10;

TEST(IdOfText, IsTheSameOnEveryMachine) {
  // python3 -c 'import xxhash; print(xxhash.xxh3_64_intdigest("...") % (2**63 - 1))'
  EXPECT_EQ(id_of_text(""), 3244421341483603138);
  EXPECT_EQ(id_of_text("007"), 42849539300347266);
  EXPECT_EQ(id_of_text("0b8bb3a1-6c1b-4ad6-a0f8-6e9f1c6f4f5e"), 3342352752987521860);
  EXPECT_NE(id_of_text("7"), id_of_text("007"));
}

TEST(Names, FindsIdsByNameAndNamesById) {
  const Path folder = temporary_folder();
  Manifest manifest;
  NameCollector collector(folder / "spill", kMuchMemory);
  for (const char* name : {"shoe", "hat", "shoe", "Größe 7, rot"}) collector.add(id_of_text(name), name);
  EXPECT_EQ(collector.write(folder, "item", manifest), 0);
  const Names names(folder, manifest, "item");
  EXPECT_EQ(names.size(), 3);
  for (const char* name : {"shoe", "hat", "Größe 7, rot"}) {
    EXPECT_EQ(names.id_of(name), id_of_text(name));
    EXPECT_EQ(names.name_of(id_of_text(name)), name);
  }
  EXPECT_EQ(names.id_of("coat"), std::nullopt);
  EXPECT_EQ(names.name_of(7), std::nullopt);
  EXPECT_LT(names.id(0), names.id(1));
}

TEST(Names, GiveTheSameBytesForAnyMemoryAndOrder) {
  const Path folder = temporary_folder();
  Manifest much, little;
  std::filesystem::create_directories(folder / "much");
  std::filesystem::create_directories(folder / "little");
  NameCollector collected(folder / "spill-1", kMuchMemory), spilled(folder / "spill-2", kLittleMemory);
  for (int i = 0; i < 500; ++i) {
    const std::string forth = fmt::format("user-{}", i % 300), back = fmt::format("user-{}", (999 - i) % 300);
    collected.add(id_of_text(forth), forth);
    spilled.add(id_of_text(back), back);
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "spill-2"));
  EXPECT_EQ(collected.write(folder / "much", "user", much), 0);
  EXPECT_EQ(spilled.write(folder / "little", "user", little), 0);
  EXPECT_EQ(much, little);
  EXPECT_EQ(Names(folder / "little", little, "user").size(), 300);
}

TEST(Names, CountCollisionsWhereverTheNamesMeet) {
  for (const std::int64_t memory : {kMuchMemory, kLittleMemory}) {
    const Path folder = temporary_folder();
    Manifest manifest;
    NameCollector collector(folder / "spill", memory);
    for (int round = 0; round < 3; ++round) {
      collector.add(7, "b");
      collector.add(7, "a");
      for (int i = 0; i < 40; ++i) collector.add(100 + i, fmt::format("other-{}", i));
      collector.add(7, "c");
    }
    EXPECT_EQ(collector.write(folder, "item", manifest), 2) << memory;
    const Names names(folder, manifest, "item");
    EXPECT_EQ(names.name_of(7), "a");  // the first in the order of bytes
    EXPECT_EQ(names.size(), 41);
  }
}

TEST(Names, OfCodesAreFoundByName) {
  const Path folder = temporary_folder();
  Manifest manifest;
  const std::vector<std::string> brands = {"zeta", "", "alpha", "Alpha"};
  write_code_names(folder, "attribute_brand", brands, manifest);
  EXPECT_THAT(manifest.names, ElementsAre("attribute_brand"));
  const Names names(folder, manifest, "attribute_brand");
  for (std::size_t i = 0; i < brands.size(); ++i) {
    const auto code = static_cast<std::int64_t>(i) + 1;
    EXPECT_EQ(names.name_of(code), brands[i]);
    EXPECT_EQ(names.id_of(brands[i]), code);
  }
  EXPECT_EQ(names.name_of(0), std::nullopt);
  EXPECT_EQ(names.name_of(5), std::nullopt);
  EXPECT_EQ(names.id_of("beta"), std::nullopt);
}

TEST(Names, MayBeNone) {
  const Path folder = temporary_folder();
  Manifest manifest;
  write_code_names(folder, "context_device", {}, manifest);
  EXPECT_EQ(Names(folder, manifest, "context_device").id_of("phone"), std::nullopt);
  NameCollector collector(folder / "spill", kMuchMemory);
  EXPECT_EQ(collector.write(folder, "item", manifest), 0);
  EXPECT_EQ(Names(folder, manifest, "item").name_of(3), std::nullopt);
}

template <typename Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Names, RefuseWhatTheDatasetDoesNotHave) {
  const Path folder = temporary_folder();
  Manifest manifest;
  EXPECT_THAT(message_of([&] { Names(folder, manifest, "item"); }), HasSubstr("keep_names"));
  write_code_names(folder, "attribute_brand", std::vector<std::string>{"x"}, manifest);
  EXPECT_THAT(message_of([&] { Names(folder, manifest, "attribute_bran"); }), HasSubstr("attribute_brand"));
  std::filesystem::resize_file(folder / names_file("attribute_brand"), 10);
  EXPECT_THAT(message_of([&] { Names(folder, manifest, "attribute_brand"); }),
              HasSubstr("names_attribute_brand.npy"));
}

TEST(Names, RefuseOffsetsOutsideTheTexts) {
  const Path folder = temporary_folder();
  Manifest manifest;
  write_code_names(folder, "attribute_brand", std::vector<std::string>{"x", "y"}, manifest);
  const Path offsets = folder / name_offsets_file("attribute_brand");
  std::fstream file(offsets, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(offsets)) - 8);
  const std::int64_t wild = 1 << 30;
  file.write(reinterpret_cast<const char*>(&wild), sizeof wild);
  file.close();
  EXPECT_THAT(message_of([&] { Names(folder, manifest, "attribute_brand").name_of(2); }),
              HasSubstr("expected bytes within [0, 2)"));
}

EventTable three_events() {
  EventTable table;
  for (const std::int64_t i : {0, 1, 2}) {
    const std::int64_t item = id_of_text(fmt::format("item-{}", i));
    table.user.append(std::span(&i, 1));
    table.time.append(std::span(&i, 1));
    table.item.append(std::span(&item, 1));
    table.action.push_back(kRankableBit | 1);
  }
  return table;
}

TEST(Names, AreColumnsOfADatasetAndAttributesFollowItemIds) {
  const Path folder = temporary_folder();
  Manifest description;
  description.name = "shop";
  description.actions = {{.name = "bought", .bit = 1}};
  description.label = "bought";
  description.pools = {"bought"};
  description.hashed["item"] = 0;
  DatasetWriter writer(folder, description);
  writer.append(three_events());
  std::vector<std::int64_t> items = {id_of_text("item-1"), id_of_text("item-2")};
  std::sort(items.begin(), items.end());
  write_item_ids(folder, items, writer.manifest());
  write_code_names(folder, "attribute_brand", std::vector<std::string>{"x", "y"}, writer.manifest());
  writer.finish(std::vector{item_attribute("brand", {1, 2})});

  const Dataset dataset(folder);
  EXPECT_EQ(dataset.manifest().hashed.at("item"), 0);
  EXPECT_THAT(dataset.manifest().names, ElementsAre("attribute_brand"));
  const AttributeColumn& brand = dataset.attribute("brand");
  EXPECT_EQ(brand.of(items[0]), 1);
  EXPECT_EQ(brand.of(items[1]), 2);
  EXPECT_EQ(brand.of(id_of_text("item-0")), 0);
  EXPECT_EQ(Names(folder, dataset.manifest(), "attribute_brand").name_of(brand.of(items[1])), "y");
}

}  // namespace
}  // namespace hstu
