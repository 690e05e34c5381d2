// Codes of items: their files, statistics and trie.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/base/npy.h"
#include "hstu/checkpoint/safetensors.h"
#include "hstu/codes/code_trie.h"
#include "hstu/codes/codes_file.h"
#include "hstu/codes/item_codes.h"
#include "temporary_folder.h"
#include "test_data.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Items 4 and 9 share a tuple.
ItemCodes small_codes() {
  return {.sizes = {3, 2}, .items = {1, 4, 7, 9}, .codes = {2, 1, 0, 1, 0, 0, 0, 1}};
}

// X-1: wherever codes come from, those of a level are counted from 0, and rows add the sizes before it.
TEST(ItemCodes, NumbersTheCodesOfAllLevelsOneAfterAnother) {
  const ItemCodes codes{.sizes = {3, 2, 5}, .items = {0}, .codes = {2, 1, 4}};
  EXPECT_EQ(codes.first_row(0), 0);
  EXPECT_EQ(codes.first_row(1), 3);
  EXPECT_EQ(codes.first_row(2), 5);
  EXPECT_EQ(codes.rows(), 10);
}

TEST(ItemCodes, CountsUseAndCollisions) {
  const CodeStatistics found = code_statistics(small_codes());
  EXPECT_EQ(found.tuples, 3);
  EXPECT_EQ(found.colliding, 2);
  EXPECT_EQ(found.largest_group, 2);
  EXPECT_EQ(found.levels[0].used, 2);
  EXPECT_NEAR(found.levels[0].perplexity, std::exp(-0.25 * std::log(0.25) - 0.75 * std::log(0.75)), 1e-12);
}

void expect_same(const ItemCodes& a, const ItemCodes& b) {
  EXPECT_EQ(a.sizes, b.sizes);
  EXPECT_EQ(a.items, b.items);
  EXPECT_EQ(a.codes, b.codes);
}

TEST(CodesFile, AFolderComesBackAsItWas) {
  const Path folder = temporary_folder();
  write_codes(folder, small_codes(), "by hand");
  expect_same(read_codes(folder), small_codes());
  std::string bytes = read_file(folder / "codes.i32.npy");
  bytes[bytes.size() - 4] = 0;
  write_file(folder / "codes.i32.npy", bytes);
  EXPECT_THROW(read_codes(folder), Error);
}

TEST(CodesFile, AppendedItemsAreSortedAmongTheOthersAndTheEarlierCodesAreKnown) {
  const Path folder = temporary_folder();
  write_codes(folder, small_codes(), "by hand");
  const std::string first = codes_checksum(small_codes());
  append_codes(folder, {.sizes = {3, 2}, .items = {2, 20}, .codes = {1, 1, 2, 0}}, "by hand");
  const ItemCodes two = read_codes(folder);
  expect_same(two,
              {.sizes = {3, 2}, .items = {1, 2, 4, 7, 9, 20}, .codes = {2, 1, 1, 1, 0, 1, 0, 0, 0, 1, 2, 0}});
  EXPECT_THAT(two.earlier, ElementsAre(first));
  append_codes(folder, {.sizes = {3, 2}, .items = {0}, .codes = {1, 0}}, "by hand");
  const ItemCodes three = read_codes(folder);
  EXPECT_THAT(three.items, ElementsAre(0, 1, 2, 4, 7, 9, 20));
  EXPECT_THAT(three.earlier, ElementsAre(first, codes_checksum(two)));
  EXPECT_THROW(append_codes(folder, {.sizes = {3, 2}, .items = {9}, .codes = {0, 0}}, ""), Error)
      << "it has codes";
  EXPECT_THROW(append_codes(folder, {.sizes = {3, 3}, .items = {8}, .codes = {0, 0}}, ""), Error);
  expect_same(read_codes(folder), three);
}

// The same codes in the form of LETTER, as numbers, and as tensors (levels, items); the first id is 10.
TEST(CodesFile, ReadsTheFormsOfOthers) {
  const Path folder = temporary_folder();
  write_file(folder / "letter.json", R"({"1": ["<a_0>", "<b_3>"], "0": ["<a_2>", "<b_1>"]})");
  write_file(folder / "numbers.json", R"({"0": [2, 1], "1": [0, 3]})");
  const std::vector<std::int64_t> tensor{2, 0, 1, 3}, shape{2, 2};
  std::string npy = npy_header("<i8", shape);
  npy.append(reinterpret_cast<const char*>(tensor.data()), 32);
  write_file(folder / "tensor.npy", npy);
  SafetensorsWriter writer(folder / "tensor.safetensors", {{"codes", DType::i64, {2, 2}}});
  writer.write(tensor.data(), 32);
  writer.close();
  const ItemCodes expected{.sizes = {4, 4}, .items = {10, 11}, .codes = {2, 1, 0, 3}};
  for (const char* name : {"letter.json", "numbers.json", "tensor.npy", "tensor.safetensors"})
    expect_same(read_codes(folder / name, 10), expected);
}

TEST(CodesFile, SaysWhatIsWrong) {
  const Path folder = temporary_folder();
  const auto refused = [&](const char* text, const char* words) {
    write_file(folder / "index.json", text);
    try {
      read_codes(folder / "index.json");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  };
  refused("[]", "expected an object");
  refused("{}", "no item has codes");
  refused(R"({"x": [1]})", "expected ids of items");
  refused(R"({"1": [1], "2": [1, 2]})", "item 2 has 2 codes, others have 1");
  refused(R"({"1": ["<b_1>"]})", "such as \"<a_12>\" at level 1");
  refused(R"({"1": ["<a_-1>"]})", "item 1: expected a code from 0");
  refused(R"({"1": [17000000]})", "codes in all levels");
  refused(R"({"1": []})", "levels of codes, found 0");
  EXPECT_THROW(read_codes(folder / "index.txt"), UsageError);
}

TEST(CodeTrie, FindsChildrenTuplesAndItems) {
  const CodeTrie trie(small_codes());
  std::vector<std::int32_t> children;
  std::vector<std::int64_t> ends;
  trie.each_child(trie.root(), 0, [&](std::int32_t code, CodeTrie::Prefix prefix) {
    children.push_back(code);
    ends.push_back(prefix.end);
  });
  EXPECT_THAT(children, ElementsAre(0, 2));
  EXPECT_THAT(ends, ElementsAre(2, 3));
  const std::int32_t shared[] = {0, 1}, absent[] = {1, 1}, alone[] = {2, 1};
  EXPECT_THAT(trie.items(trie.find(shared)), ElementsAre(4, 9));
  EXPECT_THAT(trie.items(trie.find(alone)), ElementsAre(1));
  EXPECT_EQ(trie.find(absent), -1);
  // As nodes: 0 and 2, then 0 0, 0 1 and 2 1.
  EXPECT_THAT(trie.level(0).first_child, ElementsAre(0, 2));
  EXPECT_THAT(trie.level(0).code, ElementsAre(0, 2));
  EXPECT_THAT(trie.level(1).first_child, ElementsAre(0, 2, 3));
  EXPECT_THAT(trie.level(1).code, ElementsAre(0, 1, 1));
}

// R-11: published figures of published codes.
TEST(ItemCodes, OfBeautyHaveTheirCollisions) {
  HSTU_NEEDS_DATA(folder, "retrieval/beauty");
  const auto expect = [&](const char* name, std::vector<std::int64_t> used, std::int64_t tuples,
                          std::int64_t colliding, std::int64_t largest) {
    const CodeStatistics found = code_statistics(read_codes(folder / name));
    for (std::size_t l = 0; l < used.size(); ++l) EXPECT_EQ(found.levels[l].used, used[l]) << name;
    EXPECT_EQ(found.tuples, tuples) << name;
    EXPECT_EQ(found.colliding, colliding) << name;
    EXPECT_EQ(found.largest_group, largest) << name;
  };
  expect("rkmeans_native.index.json", {256, 256, 256, 256}, 10527, 2612, 18);
  expect("rqvae_native.index.json", {131, 256, 256, 256}, 11499, 1031, 12);
  expect("letter_original.index.json", {197, 256, 256, 256}, 12088, 24, 3);
}

}  // namespace
}  // namespace hstu
