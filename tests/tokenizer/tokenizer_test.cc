// From vectors to codes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/base/random.h"
#include "hstu/base/threads.h"
#include "hstu/codes/codes_file.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/linear.h"
#include "hstu/tokenizer/assignment.h"
#include "hstu/tokenizer/kmeans.h"
#include "hstu/tokenizer/rq_ops.h"
#include "hstu/tokenizer/rq_vae.h"
#include "hstu/tokenizer/tokenize.h"
#include "temporary_folder.h"
#include "test_data.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;

ItemVectors random_vectors(std::int64_t items, std::int64_t width) {
  RandomStream random{1};
  ItemVectors vectors{.items = {}, .values = {}, .width = width};
  for (std::int64_t i = 0; i < items; ++i) {
    vectors.items.push_back(3 * i + 1);
    for (std::int64_t d = 0; d < width; ++d) vectors.values.push_back(static_cast<float>(random.normal()));
  }
  return vectors;
}

TEST(KMeans, FindsClustersThatAreFarApart) {
  std::vector<float> points;
  for (const float center : {0.0F, 10.0F, 20.0F})
    for (const float by : {-0.1F, 0.0F, 0.1F}) points.push_back(center + by);
  const KMeansResult found = kmeans(points, 1, {.clusters = 3, .iterations = 20, .key = 5});
  std::vector<float> centers = found.centers;
  std::sort(centers.begin(), centers.end());
  EXPECT_NEAR(centers[0], 0, 1e-5);
  EXPECT_NEAR(centers[1], 10, 1e-5);
  EXPECT_NEAR(centers[2], 20, 1e-5);
  for (std::size_t i = 0; i < 9; i += 3) EXPECT_EQ(found.cluster[i], found.cluster[i + 2]);
}

TEST(KMeans, HasFewerClustersThanAskedForIfThereAreFewerPoints) {
  const std::vector<float> points{1, 1, 2, 2};
  const KMeansResult found = kmeans(points, 1, {.clusters = 5, .iterations = 10, .key = 1});
  EXPECT_EQ(found.cluster[0], found.cluster[1]);
  EXPECT_NE(found.cluster[0], found.cluster[2]);
  EXPECT_EQ(found.distance, std::vector<float>(4, 0.0F));
}

TEST(ResidualKMeans, GivesTheSameCodesWithAnyNumberOfThreads) {
  const ItemVectors vectors = random_vectors(2000, 8);
  const int before = threads();
  set_threads(1);
  const TokenizedItems one = residual_kmeans(vectors, {.levels = 2, .codes = 16, .iterations = 10});
  set_threads(3);
  const TokenizedItems three = residual_kmeans(vectors, {.levels = 2, .codes = 16, .iterations = 10});
  set_threads(before);
  EXPECT_EQ(one.codes.codes, three.codes.codes);
  EXPECT_EQ(one.last_centers, three.last_centers);
  EXPECT_EQ(one.error, three.error);
  EXPECT_LT(one.error, 0.6);
}

TEST(Assignment, IsTheBestOfAllPermutations) {
  RandomStream random{3};
  for (int round = 0; round < 20; ++round) {
    std::vector<AssignmentCost> costs;
    costs.reserve(4 * 5);
    for (int i = 0; i < 4 * 5; ++i)
      costs.push_back({static_cast<std::int64_t>(random.below(3)), random.uniform()});
    const auto total = [&](const std::vector<std::int64_t>& columns) {
      AssignmentCost sum;
      for (std::size_t r = 0; r < 4; ++r) sum = sum + costs[r * 5 + static_cast<std::size_t>(columns[r])];
      return sum;
    };
    std::vector<std::int64_t> columns{0, 1, 2, 3, 4};
    AssignmentCost best = total(columns);
    while (std::next_permutation(columns.begin(), columns.end()))
      if (const AssignmentCost cost = total(columns); cost < best) best = cost;
    const AssignmentCost found = total(assign_columns(costs, 4, 5));
    EXPECT_EQ(found.changes, best.changes);
    EXPECT_NEAR(found.distance, best.distance, 1e-9);
  }
}

// Items 0 to 2 have the code 0 of two levels; centers of the last level are at 0, 1, 2 and 9.
TokenizedItems colliding_items() {
  return {.codes = {.sizes = {1, 4}, .items = {0, 1, 2, 3}, .codes = {0, 0, 0, 0, 0, 0, 0, 1}},
          .last_centers = {0, 1, 2, 9},
          .last_residuals = {0.1F, 0.9F, 0.2F, 1.0F}};
}

TEST(Collisions, AnExtraLevelNumbersThem) {
  TokenizedItems items = colliding_items();
  EXPECT_EQ(resolve_collisions(items, Collisions::extra), 3);
  EXPECT_EQ(items.codes.sizes, (std::vector<std::int64_t>{1, 4, 3}));
  EXPECT_THAT(items.codes.codes, ElementsAre(0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 0));
}

// Two of the three must change, to 2 and 9, as item 3 keeps its code. At 0.9 item 1 has the least way to 9.
TEST(Collisions, AreReassignedWithFewChangesAndLittleDistance) {
  TokenizedItems items = colliding_items();
  EXPECT_EQ(resolve_collisions(items, Collisions::reassign), 2);
  EXPECT_EQ(code_statistics(items.codes).colliding, 0);
  EXPECT_EQ(items.codes.tuple(3)[1], 1);
  const std::vector<std::int32_t> last{items.codes.tuple(0)[1], items.codes.tuple(1)[1],
                                       items.codes.tuple(2)[1]};
  EXPECT_THAT(last, ElementsAre(0, 3, 2));
}

// One after another the three operations in double, against differences; codes stay as they are.
TEST(RqOps, HaveTheGradientsOfDifferences) {
  RandomStream random{5};
  const auto numbers = [&](const Shape& shape) {
    Tensor tensor = Tensor::empty(shape, DType::f64);
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.mutable_data<double>()[i] = random.normal();
    return tensor;
  };
  const Tensor z = numbers({3, 2}), books = numbers({4, 2}), x = numbers({3, 2});
  const Tensor codes = Tensor::from<std::int32_t>({3, 2}, {0, 2, 1, 3, 1, 2});
  // Gradients stop at what is held constant here: differences of z have the codes as they are, and those of
  // the codebooks have what is left as it is.
  const auto loss_of = [&](const Tensor& zz, const Tensor& ee, double of_codes, double commitment) {
    double sum = 0;
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t c = 0; c < 2; ++c) {
        double constant = z.data<double>()[b * 2 + c], moved = zz.data<double>()[b * 2 + c];
        for (std::int64_t l = 0; l < 2; ++l) {
          const std::int64_t at = codes.data<std::int32_t>()[b * 2 + l] * 2 + c;
          sum += of_codes * std::pow(constant - ee.data<double>()[at], 2);
          sum += commitment * std::pow(moved - books.data<double>()[at], 2);
          constant -= books.data<double>()[at], moved -= books.data<double>()[at];
        }
      }
    return 0.3 * sum;
  };
  const Variable vz(z), ve(books);
  Tape tape;
  const Variable loss = quantisation_loss(tape, vz, ve, codes, 0.25, 0.3);
  EXPECT_NEAR(loss.value().data<double>()[0], loss_of(z, books, 1, 0.25), 1e-12);
  tape.backward(loss);
  constexpr double kStep = 1e-6;
  const auto difference = [&](bool of_z, std::int64_t i) {
    const auto at = [&](double by) {
      Tensor zz = z.copy(), ee = books.copy();
      (of_z ? zz : ee).mutable_data<double>()[i] += by;
      return loss_of(zz, ee, of_z ? 0 : 1, of_z ? 0.25 : 0);
    };
    return (at(kStep) - at(-kStep)) / (2 * kStep);
  };
  for (std::int64_t i = 0; i < 6; ++i)
    EXPECT_NEAR(vz.gradient().data<double>()[i], difference(true, i), 1e-7);
  for (std::int64_t i = 0; i < 8; ++i)
    EXPECT_NEAR(ve.gradient().data<double>()[i], difference(false, i), 1e-7);

  const Variable again(z);
  Tape second;
  const Variable error = squared_error(second, straight_through(second, again, x), z, 0.5);
  second.backward(error);
  for (std::int64_t i = 0; i < 6; ++i)
    EXPECT_NEAR(again.gradient().data<double>()[i], x.data<double>()[i] - z.data<double>()[i], 1e-12);
}

// A step with a linear encoder and decoder, two levels of four codes and six vectors: codes, loss and
// gradients of PyTorch, where detach() stops them.
TEST(RqOps, AStepHasTheLossAndGradientsOfPyTorch) {
  const auto waves = [](const Shape& shape, double phase) {
    Tensor tensor = Tensor::empty(shape, DType::f64);
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor.mutable_data<double>()[i] = 0.5 * std::sin(0.7 * static_cast<double>(i) + phase);
    return tensor;
  };
  const Tensor x = waves({6, 5}, 1);
  const Variable we(waves({5, 3}, 2)), be(waves({3}, 3)), wd(waves({3, 5}, 4)), bd(waves({5}, 5)),
      books(waves({8, 3}, 6));
  const Tensor codes = Tensor::from<std::int32_t>({6, 2}, {2, 4, 2, 7, 1, 5, 2, 7, 2, 4, 2, 7});
  Tape tape;
  const Variable z = ops::linear(tape, Variable::constant(x), we, be);
  Tensor left = z.value().copy(), sums = Tensor::zeros({6, 3}, DType::f64);
  for (std::int64_t b = 0; b < 6; ++b) {
    for (std::int64_t l = 0; l < 2; ++l) {
      const auto distance = [&](std::int64_t row) {
        double sum = 0;
        for (std::int64_t c = 0; c < 3; ++c)
          sum += std::pow(left.data<double>()[b * 3 + c] - books.value().data<double>()[row * 3 + c], 2);
        return sum;
      };
      const std::int64_t row = codes.data<std::int32_t>()[b * 2 + l];
      for (std::int64_t other = 4 * l; other < 4 * l + 4; ++other) EXPECT_LE(distance(row), distance(other));
      for (std::int64_t c = 0; c < 3; ++c) {
        left.mutable_data<double>()[b * 3 + c] -= books.value().data<double>()[row * 3 + c];
        sums.mutable_data<double>()[b * 3 + c] += books.value().data<double>()[row * 3 + c];
      }
    }
  }
  const Variable y = ops::linear(tape, straight_through(tape, z, sums), wd, bd);
  const Variable loss = ops::add(tape, squared_error(tape, y, x, 1.0 / 30),
                                 quantisation_loss(tape, z, books, codes, 0.25, 1.0 / 6));
  EXPECT_NEAR(loss.value().data<double>()[0], 0.592016510464, 1e-11);
  tape.backward(loss);
  const std::pair<const Variable*, double> expected[] = {{&we, -0.0254160679},
                                                         {&be, 0.0964459139},
                                                         {&wd, -0.0022954458},
                                                         {&bd, -0.1623369103},
                                                         {&books, 0.1628635965}};
  for (const auto& [variable, value] : expected) {
    double sum = 0;
    for (std::int64_t i = 0; i < variable->value().size(); ++i)
      sum += variable->gradient().data<double>()[i] * std::cos(1.3 * static_cast<double>(i));
    EXPECT_NEAR(sum, value, 1e-9);
  }
}

TEST(RqVae, ReconstructsBetterWithEpochsAndUsesItsCodes) {
  const ItemVectors vectors = random_vectors(300, 6);
  const ResidualKMeansOptions sizes{.levels = 2, .codes = 8};
  RqVaeOptions options{.hidden = {16}, .code_width = 4, .epochs = 1, .batch = 64};
  const double before = rq_vae(vectors, sizes, options).error;
  options.epochs = 60;
  const TokenizedItems after = rq_vae(vectors, sizes, options);
  EXPECT_LT(after.error, 0.8 * before);
  EXPECT_EQ(code_statistics(after.codes).levels[0].used, 8);
  const int threads_before = threads();
  set_threads(3);
  EXPECT_EQ(rq_vae(vectors, sizes, options).codes.codes, after.codes.codes);
  set_threads(threads_before);
}

TEST(Tokenize, WritesCodesOfVectorsWithIds) {
  const Path folder = temporary_folder();
  const std::vector<std::int64_t> shape{3, 2};
  const std::vector<double> values{0, 0, 5, 5, 9, 9};
  std::string npy = npy_header("<f8", shape);
  npy.append(reinterpret_cast<const char*>(values.data()), 48);
  write_file(folder / "v.npy", npy);
  write_npy(folder / "ids.npy", std::vector<std::int64_t>{8, 2, 5});
  TokenizeOptions options{.vectors = folder / "v.npy", .ids = folder / "ids.npy", .output = folder / "codes"};
  options.sizes.levels = 1, options.sizes.codes = 4;
  const Json result = tokenize(options);
  EXPECT_EQ(result["colliding_items"], 0);
  EXPECT_EQ(result["error"], 0.0);
  EXPECT_THAT(read_codes(folder / "codes").items, ElementsAre(2, 5, 8));
  write_npy(folder / "ids.npy", std::vector<std::int64_t>{8, 2, 8});
  options.output = folder / "other";
  EXPECT_THROW(tokenize(options), Error);
}

// Of `count` items with equal vectors, all on one code.
TokenizedItems equal_items(std::int64_t count, std::int32_t codes) {
  TokenizedItems items;
  items.codes.sizes = {1, codes};
  for (std::int64_t i = 0; i < count; ++i) {
    items.codes.items.push_back(i);
    items.codes.codes.insert(items.codes.codes.end(), {0, 0});
  }
  items.last_centers.assign(static_cast<std::size_t>(codes), 0);
  items.last_residuals.assign(static_cast<std::size_t>(count), 0);
  return items;
}

TEST(Collisions, AGroupWithMoreItemsThanCodesSharesThemEvenly) {
  for (const std::int64_t count : {9, 16, 100}) {
    TokenizedItems items = equal_items(count, 8);
    EXPECT_EQ(resolve_collisions(items, Collisions::reassign), count - (count + 7) / 8)
        << "the others keep theirs";
    const CodeStatistics statistics = code_statistics(items.codes);
    EXPECT_EQ(statistics.tuples, 8);
    EXPECT_EQ(statistics.largest_group, (count + 7) / 8);
  }
}

TEST(Collisions, ItemsThatComeLaterGetTheCodesThatTheFewestHave) {
  TokenizedItems known = equal_items(3, 8), later = equal_items(7, 8);
  resolve_collisions(known, Collisions::reassign);
  for (std::int64_t& item : later.codes.items) item += 100;
  const std::vector<std::int32_t> before = known.codes.codes;
  resolve_collisions(later, known.codes, Collisions::reassign);
  EXPECT_EQ(known.codes.codes, before);
  std::vector<std::int64_t> used(8, 0);
  for (const ItemCodes* const codes : {&known.codes, &later.codes})
    for (std::int64_t i = 0; i < codes->size(); ++i) ++used[static_cast<std::size_t>(codes->tuple(i)[1])];
  EXPECT_EQ(*std::ranges::min_element(used), 1);
  EXPECT_EQ(*std::ranges::max_element(used), 2);

  TokenizedItems one = equal_items(3, 8), numbered = equal_items(2, 8);
  EXPECT_EQ(resolve_collisions(one, Collisions::extra), 3);
  EXPECT_EQ(resolve_collisions(numbered, one.codes, Collisions::extra), 3)
      << "a further level keeps its size";
  EXPECT_THAT(numbered.codes.codes, ElementsAre(0, 0, 0, 0, 0, 1));
}

// New items are coded as if they had been there, and nothing else changes.
TEST(Tokenize, AppendsItemsToAFolder) {
  const Path folder = temporary_folder();
  const auto write_vectors = [&](const char* name, const ItemVectors& vectors) {
    const std::int64_t shape[] = {vectors.size(), vectors.width};
    std::string npy = npy_header("<f4", shape);
    npy.append(reinterpret_cast<const char*>(vectors.values.data()), vectors.values.size() * sizeof(float));
    write_file(folder / (std::string(name) + ".npy"), npy);
    write_npy(folder / (std::string(name) + "_ids.npy"), vectors.items);
  };
  const ItemVectors all = random_vectors(60, 4);
  ItemVectors old = all;
  old.items.resize(40), old.values.resize(160);
  write_vectors("all", all);
  write_vectors("old", old);
  for (const TokenizeMethod method :
       {TokenizeMethod::residual_kmeans, TokenizeMethod::rq_vae, TokenizeMethod::random}) {
    const Path codes = folder / std::string(word_of(kTokenizeMethods, method));
    TokenizeOptions options{
        .vectors = folder / "old.npy", .ids = folder / "old_ids.npy", .output = codes, .method = method};
    options.sizes.levels = 2, options.sizes.codes = 8, options.rq_vae.epochs = 2;
    tokenize(options);
    const ItemCodes before = read_codes(codes);
    const TokenizeOptions more{.vectors = folder / "all.npy", .ids = folder / "all_ids.npy", .append = codes};
    for (const std::int64_t appended : {20, 0}) {
      const Json result = tokenize(more);
      EXPECT_EQ(result.at("items"), 60);
      EXPECT_EQ(result.at("items_appended"), appended);
      EXPECT_EQ(result.at("items_kept"), 60 - appended);
    }
    const ItemCodes after = read_codes(codes);
    EXPECT_EQ(after.items, all.items);
    EXPECT_TRUE(std::equal(before.codes.begin(), before.codes.end(), after.codes.begin()));
    EXPECT_THAT(after.earlier, ElementsAre(codes_checksum(before)));
  }
  std::filesystem::remove(folder / "residual-kmeans/codebooks.safetensors");
  std::filesystem::remove_all(folder / "residual-kmeans/appended_0001");
  EXPECT_THROW(tokenize({.vectors = folder / "all.npy",
                         .ids = folder / "all_ids.npy",
                         .append = folder / "residual-kmeans"}),
               Error);
}

// The file is an archive of PyTorch, in which the numbers are as they are.
TEST(ResidualKMeans, UsesTheCodesOfBeauty) {
  HSTU_NEEDS_DATA(path, "retrieval/beauty/Beauty-32d-sasrec.pt");
  const std::string archive = read_file(path);
  const std::string name = "SASRec/data/0";
  const std::size_t at = archive.find(name);
  ASSERT_NE(at, std::string::npos);
  const std::size_t extra =
      static_cast<unsigned char>(archive[at - 2]) + 256U * static_cast<unsigned char>(archive[at - 1]);
  ItemVectors vectors{.items = {}, .values = std::vector<float>(12101 * 32), .width = 32};
  std::memcpy(vectors.values.data(), archive.data() + at + name.size() + extra, vectors.values.size() * 4);
  for (std::int64_t i = 0; i < 12101; ++i) vectors.items.push_back(i);
  const CodeStatistics found = code_statistics(residual_kmeans(vectors, {.iterations = 5}).codes);
  for (const CodeStatistics::Level& level : found.levels) EXPECT_GE(level.used, 250);
}

}  // namespace
}  // namespace hstu
