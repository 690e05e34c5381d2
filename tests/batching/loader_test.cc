#include "hstu/batching/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "batching/plain_layout.h"
#include "batching/small_data.h"
#include "hstu/batching/anchors.h"

namespace hstu {
namespace {

using small::Data;

class LoaderTest : public testing::Test {
 protected:
  static DataOptions options() {
    DataOptions options;
    options.history_length = 30;
    options.min_history = 3;
    options.window_seconds = 40;
    options.attributes = {"artist_id"};
    options.contextual = {{"user_x_hour", {"user", "hour"}, 100, true}};
    return options;
  }
  const Data data_ = small::write(small::random_events(21, {.users = 20}));
  const Dataset dataset_{data_.folder};
  const SampleBuilder builder_{dataset_, options()};
  const small::PlainLayout layout_{
      SampleFeatures({"item", 1000}, {{"artist_id", 1000}}, {{"user_x_hour", 100}})};
  Batch batch_of(std::span<const std::int64_t> positions) const {
    Batch batch;
    LayoutScratch scratch;
    layout_.lay_out(builder_.build(positions), scratch, batch);
    return batch;
  }
  const Anchors anchors_ = find_anchors(dataset_, options(), {.fraction = 0.3});
};

std::vector<std::int64_t> positions_of(const Batch& batch) {
  const auto positions = batch.values<std::int64_t>(kPositionColumn);
  return {positions.begin(), positions.end()};
}

TEST_F(LoaderTest, BatchesAndOrderDoNotDependOnTheNumberOfWorkers) {
  const ScheduleOptions schedule{.batch_size = 7, .epochs = 3, .shuffle_fraction = 1, .seed = 5};
  for (const int workers : {1, 2, 4}) {
    for (const int ready : {1, 3, 16}) {
      Loader loader(builder_, layout_, {anchors_.training, schedule}, {.workers = workers, .ready = ready});
      BatchSchedule expected(anchors_.training, schedule);
      std::int64_t batches = 0;
      while (const auto* loaded = loader.next()) {
        const auto job = expected.next();
        ASSERT_TRUE(job);
        EXPECT_EQ(loaded->cursor, job->cursor);
        EXPECT_EQ(loaded->next, job->next);
        EXPECT_EQ(loaded->window_end, job->window_end);
        EXPECT_GE(loaded->data_wait_ms, 0);
        EXPECT_EQ(small::contents(loaded->batch), small::contents(batch_of(job->positions)));
        EXPECT_TRUE(loaded->last_part);
        EXPECT_EQ(loaded->batch.supervised, static_cast<std::int64_t>(job->positions.size()));
        ++batches;
      }
      EXPECT_FALSE(expected.next());
      EXPECT_EQ(batches, 3 * expected.batches_per_epoch());
      EXPECT_FALSE(loader.next());  // null again after the end
    }
  }
}

TEST_F(LoaderTest, AResumedRunReadsTheSameBatches) {
  const ScheduleOptions schedule{.batch_size = 7, .epochs = 2, .shuffle_fraction = 0.5};
  Loader whole(builder_, layout_, {anchors_.training, schedule});
  BatchCursor cursor;
  for (int i = 0; i < 9; ++i) cursor = whole.next()->next;
  Loader resumed(builder_, layout_, {anchors_.training, schedule, cursor});
  while (const auto* expected = whole.next()) {
    const auto* found = resumed.next();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->cursor, expected->cursor);
    EXPECT_EQ(small::contents(found->batch), small::contents(expected->batch));
  }
  EXPECT_FALSE(resumed.next());
}

TEST_F(LoaderTest, StopsEarlyWithoutHanging) {
  const ScheduleOptions endless{.batch_size = 3, .epochs = 0, .shuffle_fraction = 1};
  for (int taken = 0; taken < 4; ++taken) {
    Loader loader(builder_, layout_, {anchors_.training, endless}, {.workers = 4, .ready = 2});
    for (int i = 0; i < taken; ++i) ASSERT_TRUE(loader.next());
  }
}

TEST_F(LoaderTest, AWorkersExceptionStandsInThePlaceOfItsBatch) {
  const AnchorList broken({3, 4, 5, 6, dataset_.events(), 7, 8, 9}, std::vector<std::int64_t>{0, 8});
  for (const int workers : {1, 3}) {
    Loader loader(builder_, layout_, {broken, {.batch_size = 2}}, {.workers = workers, .ready = 3});
    EXPECT_EQ(positions_of(loader.next()->batch), (std::vector<std::int64_t>{3, 4}));
    EXPECT_EQ(positions_of(loader.next()->batch), (std::vector<std::int64_t>{5, 6}));
    EXPECT_THROW(loader.next(), Error);
    EXPECT_THROW(loader.next(), Error);
  }
}

TEST_F(LoaderTest, TrainingAndEvaluationNeverMix) {
  const auto set_of = [](const AnchorList& list) {
    const auto positions = list.first(list.size());
    return std::set<std::int64_t>(positions.begin(), positions.end());
  };
  const auto training = set_of(anchors_.training), evaluation = set_of(anchors_.evaluation);
  Loader train(builder_, layout_, {anchors_.training, {.batch_size = 5, .epochs = 0, .shuffle_fraction = 1}});
  std::multiset<std::int64_t> trained, evaluated;
  for (int round = 0; round < 3; ++round) {  // evaluations begin while training's batches are in progress
    for (int i = 0; i < 8; ++i) {
      const auto* loaded = train.next();
      const auto positions = positions_of(loaded->batch);
      trained.insert(positions.begin(), positions.end());
    }
    Loader evaluate(builder_, layout_, {anchors_.evaluation, {.batch_size = 5}});
    while (const auto* loaded = evaluate.next()) {
      const auto positions = positions_of(loaded->batch);
      evaluated.insert(positions.begin(), positions.end());
    }
  }
  EXPECT_GT(trained.size(), 50u);
  EXPECT_EQ(evaluated.size(), 3 * evaluation.size());
  for (const std::int64_t p : trained) {
    EXPECT_TRUE(training.contains(p));
    EXPECT_LT(data_.at(p).time, anchors_.holdout.time_begin);
  }
  for (const std::int64_t p : evaluation) EXPECT_EQ(evaluated.count(p), 3u);
}

TEST_F(LoaderTest, BatchesForTheHostAreReadWhereTheyWereBuilt) {
  Loader loader(builder_, layout_, {anchors_.training, {.batch_size = 7}}, {.readers = {Stream()}});
  for (int i = 0; i < 3; ++i) {
    const Batch& batch = loader.next()->batch;
    EXPECT_EQ(batch.tensor(kLabelColumn).raw(),
              reinterpret_cast<const std::byte*>(batch.values<float>(kLabelColumn).data()));
  }
}

// Memory that counts its allocations.
class CountingMemory : public BatchMemory {
 public:
  std::int64_t asked() const { return asked_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    ++asked_;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const BatchMemory& other) const noexcept override { return this == &other; }
  std::atomic<std::int64_t> asked_ = 0;
};

TEST_F(LoaderTest, AllocatesNothingOnceItsBuffersHaveGrown) {
  CountingMemory memory;
  const ScheduleOptions endless{.batch_size = 7, .epochs = 0, .shuffle_fraction = 1};
  Loader loader(builder_, layout_, {anchors_.training, endless},
                {.workers = 2, .ready = 3, .memory = &memory});
  const auto read_epochs = [&](std::int64_t end) {
    const LoadedBatch* loaded = loader.next();
    while (loaded->next.epoch < end) loaded = loader.next();
    return loaded->cursor.epoch;
  };
  // The buffer of a batch does not depend on timing, so neither do the allocations.
  read_epochs(60);
  const std::int64_t grown = memory.asked();
  EXPECT_GE(grown, 4);  // four batches have separate memory
  read_epochs(120);
  EXPECT_LT(memory.asked() - grown, 12);
  read_epochs(240);
  const std::int64_t late = memory.asked();
  read_epochs(260);
  EXPECT_LE(memory.asked() - late, 1);
}

TEST_F(LoaderTest, CutsBatchesIntoPartsOfLimitedTokens) {
  const ScheduleOptions schedule{.batch_size = 11, .epochs = 2, .shuffle_fraction = 1};
  for (const std::int64_t limit : {1, 60, 100'000}) {
    Loader loader(builder_, layout_, {anchors_.training, schedule},
                  {.workers = 3, .division = {.part_tokens = limit}});
    BatchSchedule whole(anchors_.training, schedule);
    std::int64_t parts = 0, batches = 0;
    while (const auto job = whole.next()) {
      std::vector<std::int64_t> positions;
      for (bool last = false; !last; ++parts) {
        const auto* part = loader.next();
        ASSERT_TRUE(part);
        std::int64_t tokens = 0;
        for (const std::int64_t p : positions_of(part->batch)) {
          tokens += builder_.most_tokens(p);
          positions.push_back(p);
        }
        EXPECT_TRUE(tokens <= limit || part->batch.samples == 1);
        EXPECT_EQ(part->batch.supervised, static_cast<std::int64_t>(job->positions.size()));
        EXPECT_EQ(part->next, job->next);
        last = part->last_part;
      }
      EXPECT_EQ(positions, std::vector<std::int64_t>(job->positions.begin(), job->positions.end()));
      ++batches;
    }
    EXPECT_FALSE(loader.next());
    EXPECT_EQ(limit == 100'000, parts == batches);
  }
}

// The ranks' slices together are the global batch; a rank without samples still gets its (empty) part.
TEST_F(LoaderTest, DealsSlicesOfEveryBatchToTheRanks) {
  const ScheduleOptions schedule{.batch_size = 3, .epochs = 1};
  constexpr int kRanks = 4;
  std::vector<std::unique_ptr<Loader>> loaders;
  loaders.reserve(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    loaders.push_back(
        std::make_unique<Loader>(builder_, layout_, BatchSchedule(anchors_.training, schedule),
                                 LoaderOptions{.workers = 1, .division = {.ranks = kRanks}, .rank = rank}));
  }
  BatchSchedule whole(anchors_.training, schedule);
  bool empty_seen = false;
  while (const auto job = whole.next()) {
    std::vector<std::int64_t> positions;
    for (const auto& loader : loaders) {
      const auto* part = loader->next();
      ASSERT_TRUE(part);
      EXPECT_EQ(part->batch.supervised, static_cast<std::int64_t>(job->positions.size()));
      const auto mine = positions_of(part->batch);
      positions.insert(positions.end(), mine.begin(), mine.end());
      empty_seen |= mine.empty();
    }
    EXPECT_EQ(positions, std::vector<std::int64_t>(job->positions.begin(), job->positions.end()));
  }
  EXPECT_TRUE(empty_seen);
  for (const auto& loader : loaders) EXPECT_FALSE(loader->next());
}

// A division before the first call of next() is beside the caller's work; one that next() waits for is not.
TEST_F(LoaderTest, TellsWhatDivisionsCameToAndWhatOfThemWasWaitedFor) {
  const ScheduleOptions schedule{.batch_size = 8};
  std::atomic<int> divisions = 0;
  const auto slowly = [&](std::span<const std::int64_t> tokens, int ranks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    ++divisions;
    return Division{
        .parts = contiguous_partition(tokens.size(), ranks), .work = {5, 7}, .work_of_slices = {9, 3}};
  };
  Loader loader(builder_, layout_, {anchors_.training, schedule},
                {.workers = 1, .ready = 1, .division = {.piece_samples = 4, .ranks = 2, .divide = slowly}});
  while (divisions < 2) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));  // the first part is ready, the second waits
  DivisionFigures figures = loader.next()->division;
  EXPECT_EQ(figures.work, (std::vector<std::int64_t>{5, 7}));
  EXPECT_GE(figures.ms, 60);
  EXPECT_EQ(figures.exposed_ms, 0);
  const LoadedBatch* second = loader.next();
  ASSERT_TRUE(second->last_part);
  EXPECT_EQ(second->division.work, (std::vector<std::int64_t>{10, 14}));
  EXPECT_EQ(second->division.work_of_slices, (std::vector<std::int64_t>{18, 6}));
  figures = loader.next()->division;  // of the next batch, whose division began after the second part left
  EXPECT_EQ(figures.work, (std::vector<std::int64_t>{5, 7}));
  EXPECT_GT(figures.exposed_ms, 0);
  EXPECT_LE(figures.exposed_ms, figures.ms);
}

// Each piece is divided among the ranks like a batch of its size.
TEST_F(LoaderTest, PiecesOfABatchAreDividedAsBatches) {
  const ScheduleOptions small{.batch_size = 7, .epochs = 2, .shuffle_fraction = 1, .seed = 5};
  ScheduleOptions large = small;
  large.batch_size = 21;
  for (const int rank : {0, 1}) {
    Loader batches(builder_, layout_, {anchors_.training, small},
                   {.division = {.part_tokens = 40, .ranks = 2}, .rank = rank});
    Loader pieces(builder_, layout_, {anchors_.training, large},
                  {.division = {.piece_samples = 7, .part_tokens = 40, .ranks = 2}, .rank = rank});
    BatchSchedule expected(anchors_.training, large);
    std::int64_t left = 0, ends = 0;
    while (const auto* part = batches.next()) {
      const auto* found = pieces.next();
      ASSERT_TRUE(found);
      EXPECT_EQ(positions_of(found->batch), positions_of(part->batch));
      if (left == 0) left = static_cast<std::int64_t>(expected.next()->positions.size());
      EXPECT_GE(found->batch.supervised, part->batch.supervised);
      if (!part->last_part) {
        EXPECT_FALSE(found->last_part);
        continue;
      }
      left -= part->global_samples;
      EXPECT_EQ(found->last_part, left == 0);
      ends += found->last_part ? 1 : 0;
    }
    EXPECT_FALSE(pieces.next());
    EXPECT_EQ(ends, 2 * expected.batches_per_epoch());
  }
}

TEST_F(LoaderTest, RefusesToWorkWithoutWorkersOrRoom) {
  EXPECT_THROW(Loader(builder_, layout_, {anchors_.training, {}}, {.workers = 0}), UsageError);
  EXPECT_THROW(Loader(builder_, layout_, {anchors_.training, {}}, {.workers = 1, .ready = 0}), UsageError);
}

// The batches on the device, as a stream reads them that is late with its work.
class LoaderOnGpu : public LoaderTest {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    compute_ = make_context(Device::cuda(0));
    late_ = Tensor::empty({kLateBytes}, DType::u8, compute_);
  }

  using Contents = decltype(small::contents(Batch()));
  struct Read {
    Contents expected;
    std::vector<Tensor> found;  // copies of the columns on the device
  };
  // Puts the work of a step on the stream and returns before it has begun.
  Read read(const Batch& batch) {
    for (int i = 0; i < 8; ++i) late_.fill_zero(compute_.stream);  // milliseconds
    Read read{small::contents(batch), {}};
    for (const Batch::Column& column : batch.columns()) {
      const Tensor values = batch.tensor(column.name);
      EXPECT_EQ(values.device(), compute_.device());
      read.found.push_back(values.copy(compute_));
    }
    return read;
  }
  void expect_equal(const Read& read) const {
    ASSERT_EQ(read.found.size(), read.expected.size());
    for (std::size_t i = 0; i < read.found.size(); ++i) {
      const Tensor values = read.found[i].to_host(compute_.stream);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(values.raw()), values.bytes()),
                read.expected[i].second)
          << read.expected[i].first;
    }
  }

  static constexpr std::int64_t kLateBytes = std::int64_t{1} << 30;
  Context compute_;
  Tensor late_;
};

TEST_F(LoaderOnGpu, TensorsHaveTheBatchesValuesHoweverLateTheyAreRead) {
  const ScheduleOptions schedule{.batch_size = 7, .epochs = 2, .shuffle_fraction = 1};
  for (const int workers : {1, 4}) {
    for (const int ready : {1, 3}) {
      Loader loader(builder_, layout_, {anchors_.training, schedule},
                    {.workers = workers,
                     .ready = ready,
                     .division = {.part_tokens = 60},
                     .readers = {compute_.stream}});
      std::vector<Read> all;
      while (const auto* part = loader.next()) all.push_back(read(part->batch));
      EXPECT_GT(all.size(), 20u);
      for (const Read& part : all) expect_equal(part);
    }
  }
}

TEST_F(LoaderOnGpu, EndsEarlyWhileItsBatchesAreCopiedAndRead) {
  const ScheduleOptions endless{.batch_size = 3, .epochs = 0, .shuffle_fraction = 1};
  for (int taken = 0; taken < 4; ++taken) {
    std::vector<Read> all;
    {
      Loader loader(builder_, layout_, {anchors_.training, endless},
                    {.workers = 4, .ready = 2, .readers = {compute_.stream}});
      for (int i = 0; i < taken; ++i) all.push_back(read(loader.next()->batch));
    }
    for (const Read& part : all) expect_equal(part);
  }
}

TEST_F(LoaderOnGpu, AWorkersExceptionStandsInThePlaceOfItsBatch) {
  const AnchorList broken({3, 4, 5, 6, dataset_.events(), 7, 8, 9}, std::vector<std::int64_t>{0, 8});
  Loader loader(builder_, layout_, {broken, {.batch_size = 2}}, {.workers = 3, .readers = {compute_.stream}});
  for (int i = 0; i < 2; ++i) expect_equal(read(loader.next()->batch));
  EXPECT_THROW(loader.next(), Error);
  EXPECT_THROW(loader.next(), Error);
}

}  // namespace
}  // namespace hstu
