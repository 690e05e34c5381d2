// A step and a search of the model of semantic ids on a GPU against the host's.
#include <cmath>
#include <utility>

#include "hstu/kinds/semantic_ids/code_search.h"
#include "hstu/kinds/semantic_ids/semantic_ids_objective.h"
#include "support/gpu_test.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

constexpr std::int64_t kItems = 300, kLevels = 3, kCodes = 9, kUsers = 7, kLongest = 19;

// Few enough codes that a search meets prefixes of many tuples, and none that begin a tuple.
std::shared_ptr<const ItemCodes> random_codes() {
  RandomStream random{7};
  ItemCodes codes{.sizes = std::vector<std::int64_t>(kLevels, kCodes), .items = {}, .codes = {}};
  for (std::int64_t i = 0; i < kItems; ++i) {
    codes.items.push_back(i);
    for (std::int64_t l = 0; l < kLevels; ++l)
      codes.codes.push_back(static_cast<std::int32_t>(random.below(kCodes)));
  }
  return std::make_shared<const ItemCodes>(codes);
}

// Users with histories of 1, 4, 7, .. events.
Samples random_samples(bool predicts_next_events, std::uint64_t seed) {
  RandomStream random{seed};
  Samples samples;
  samples.count = kUsers;
  samples.predicts_next_events = predicts_next_events;
  for (std::int64_t i = 0; i < kItems; ++i) samples.items.push_back(i);
  samples.history_offsets.push_back(0);
  for (std::int64_t u = 0; u < kUsers; ++u) {
    for (std::int64_t e = 0; e <= 3 * u; ++e)
      samples.history_item.push_back(static_cast<std::int32_t>(random.below(kItems)));
    samples.history_offsets.push_back(std::ssize(samples.history_item));
    samples.candidate_item.push_back(static_cast<std::int32_t>(random.below(kItems)));
    samples.user.push_back(u), samples.position.push_back(100 * u);
  }
  samples.history_action.assign(samples.history_item.size(), 0);
  samples.history_time.assign(samples.history_item.size(), 1);
  samples.candidate_time.assign(kUsers, 2), samples.label.assign(kUsers, 1);
  return samples;
}

SemanticIdsConfig config_of(CodeBlocks block, CodePositions positions, CodeHeads head) {
  SemanticIdsConfig config;
  config.block = block, config.positions = positions, config.head = head;
  config.dim = 48, config.layers = 2, config.heads = 3, config.head_dim = 16;
  config.dropout = 0.2;
  config.history = kLongest;
  config.beam = 12;
  return config;
}

// The model on a device.
class OnDevice {
 public:
  OnDevice(const SemanticIdsConfig& config, const Context& context, DType compute)
      : context_(context),
        compute_(compute),
        codes_(random_codes()),
        trie_(std::make_shared<const CodeTrie>(*codes_)),
        model_(config, codes_, trie_, 3),
        objective_(model_, config, codes_, trie_),
        table_(testing::random_tensor({codes_->rows(), config.dim}, DType::f32, 4).copy(context)) {
    model_.move_to(context, compute);
  }

  // The loss, then the gradients of the table and of all parameters.
  std::vector<Tensor> step() {
    Batch batch = batch_of(true);
    batch.supervised = kUsers;
    model_.parameters().clear_gradients(context_.stream);
    Tape tape(context_);
    const std::vector<Variable> rows{Variable(table_)};
    const Variable outputs = model_.forward(tape, batch, rows, Draws(5, 6));
    const Variable loss = objective_.loss({.tape = tape, .batch = batch, .rows = rows}, outputs);
    tape.backward(loss);
    std::vector<Tensor> all{loss.value().to_host(context_.stream),
                            rows[0].gradient().to_host(context_.stream)};
    for (const Parameter* parameter : model_.parameters().all())
      all.push_back(parameter->gradient.to_host(context_.stream));
    return all;
  }
  // Searches of batches of one size whose users have other histories, by one CodeSearch that replays its
  // launches and by a search for each.
  std::vector<std::pair<Tensor, Tensor>> searches_again() {
    Tape tape(context_, false);
    const Variable rows = ops::convert(tape, Variable::constant(table_), compute_);
    CodeSearch search(model_, context_, {.replays = true, .times = true});
    std::vector<std::pair<Tensor, Tensor>> found;
    for (const std::uint64_t seed : {8, 9, 10, 11}) {
      const Batch batch = batch_of(false, seed);
      search.begin(batch, rows);
      const Tensor once = search.finish();
      EXPECT_EQ(search.level_ms().size(), kLevels);
      found.emplace_back(once, model_.search(tape, batch, rows));
    }
    return found;
  }
  Tensor search() {
    const Batch batch = batch_of(false);
    Tape tape(context_, false);
    return model_.forward(tape, batch, std::vector<Variable>{Variable(table_)}, Draws()).value();
  }

 private:
  Batch batch_of(bool predicts_next_events, std::uint64_t seed = 8) const {
    LayoutScratch scratch;
    Batch batch;
    model_.layout().lay_out(random_samples(predicts_next_events, seed), scratch, batch);
    batch.copy_to(context_);
    return batch;
  }

  Context context_;
  DType compute_;
  std::shared_ptr<const ItemCodes> codes_;
  std::shared_ptr<const CodeTrie> trie_;
  SemanticIds model_;
  SemanticIdsObjective objective_;
  Tensor table_;
};

class SemanticIdsModelOnGpu : public testing::GpuTest {
 protected:
  // Calls body(config) for each block, with positions and heads of both kinds.
  template <typename Body>
  static void for_forms(const Body& body) {
    body(config_of(CodeBlocks::softmax, CodePositions::learned, CodeHeads::separate));
    body(config_of(CodeBlocks::softmax, CodePositions::rotary, CodeHeads::shared));
    body(config_of(CodeBlocks::hstu, CodePositions::learned, CodeHeads::separate));
  }
};

TEST_F(SemanticIdsModelOnGpu, AStepHasTheLossAndGradientsOfTheHost) {
  for_forms([&](const SemanticIdsConfig& config) {
    const std::vector<Tensor> expected = OnDevice(config, host_context(), DType::f32).step();
    for (const DType type : {DType::f32, DType::bf16}) {
      OnDevice on_gpu(config, gpu_, type);
      const std::vector<Tensor> found = on_gpu.step(), again = on_gpu.step();
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        double error = 0, norm = 0;
        for (std::int64_t e = 0; e < found[i].size(); ++e) {
          const double x = found[i].data<float>()[e], y = expected[i].data<float>()[e];
          error += (x - y) * (x - y), norm += y * y;
          EXPECT_EQ(x, again[i].data<float>()[e]);
        }
        // What is left of sums that cancel has few digits in bfloat16.
        const double limit = type == DType::f32 ? 1e-4 : i == 0 ? 0.02 : 0.25;
        EXPECT_LE(std::sqrt(error), limit * std::sqrt(norm)) << i;
      }
    }
  });
}

TEST_F(SemanticIdsModelOnGpu, ASearchFindsTheTuplesOfTheHost) {
  for_forms([&](const SemanticIdsConfig& config) {
    const Tensor expected = OnDevice(config, host_context(), DType::f32).search();
    for (const DType type : {DType::f32, DType::bf16}) {
      const Tensor found = OnDevice(config, gpu_, type).search();
      ASSERT_EQ(found.shape(), expected.shape());
      const double limit = type == DType::f32 ? 1e-4 : 0.1;
      const float *const x = found.data<float>(), *const y = expected.data<float>();
      std::int64_t same = 0;
      for (std::int64_t at = 0; at < found.size(); at += kLevels + 1) {
        EXPECT_NEAR(x[at + kLevels], y[at + kLevels], limit) << at;
        if (std::equal(x + at, x + at + kLevels, y + at)) ++same;
      }
      // Neighbours whose log-probabilities are equal up to rounding may change places.
      EXPECT_GE(same, type == DType::f32 ? kUsers * config.beam - 4 : 0);
    }
  });
}

TEST_F(SemanticIdsModelOnGpu, AReplayedSearchFindsWhatALaunchedOneFinds) {
  SemanticIdsConfig config = config_of(CodeBlocks::softmax, CodePositions::learned, CodeHeads::separate);
  config.dim = 128, config.heads = 2, config.head_dim = 64;
  for (const auto& [replayed, launched] : OnDevice(config, gpu_, DType::bf16).searches_again()) {
    ASSERT_EQ(replayed.shape(), launched.shape());
    for (std::int64_t i = 0; i < replayed.size(); ++i)
      EXPECT_EQ(replayed.data<float>()[i], launched.data<float>()[i]) << i;
  }
}

}  // namespace
}  // namespace hstu
