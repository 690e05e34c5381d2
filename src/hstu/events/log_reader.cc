#include "hstu/events/log_reader.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace hstu {
namespace {

// Chunks of pieces that are read in parallel and delivered piece by piece. The thread that reads the piece to
// be delivered next never waits, so a full queue always drains.
class OrderedQueue {
 public:
  OrderedQueue(std::size_t pieces, std::int64_t bytes) : pieces_(pieces), room_(bytes) {}

  // False if the chunk is no longer needed.
  bool push(std::size_t piece, LogChunk chunk) {
    const std::int64_t bytes = chunk.bytes();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || piece == turn_ || room_ >= bytes; });
    if (stopped_) return false;
    room_ -= bytes;
    pieces_[piece].chunks.push_back(std::move(chunk));
    if (piece == turn_) changed_.notify_all();
    return true;
  }

  // The piece has ended, possibly with an error.
  void end(std::size_t piece, std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    pieces_[piece].ended = true;
    pieces_[piece].error = std::move(error);
    changed_.notify_all();
  }

  // The next chunk; nothing after the last one.
  std::optional<LogChunk> pop() {
    std::unique_lock lock(mutex_);
    while (turn_ < pieces_.size()) {
      Piece& piece = pieces_[turn_];
      changed_.wait(lock, [&] { return piece.ended || !piece.chunks.empty(); });
      if (!piece.chunks.empty()) {
        LogChunk chunk = std::move(piece.chunks.front());
        piece.chunks.pop_front();
        room_ += chunk.bytes();
        changed_.notify_all();
        return chunk;
      }
      if (piece.error) std::rethrow_exception(piece.error);
      piece.chunks = {};
      ++turn_;
      changed_.notify_all();
    }
    return std::nullopt;
  }

  void stop() {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  struct Piece {
    std::deque<LogChunk> chunks;
    bool ended = false;
    std::exception_ptr error;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Piece> pieces_;
  std::size_t turn_ = 0;
  std::int64_t room_;
  bool stopped_ = false;
};

// One thread: reads the next piece that no thread reads yet, until there is none.
class Reader {
 public:
  Reader(const LogFiles& log, const EventExtractor& extractor, const ReadOptions& options,
         const std::function<void(LogChunk&)>& refine)
      : log_(log), extractor_(extractor), options_(options), refine_(refine) {}

  void run(std::atomic<std::size_t>& next_piece, OrderedQueue& queue) {
    for (;;) {
      const std::size_t piece = next_piece++;
      if (piece >= log_.pieces.size()) return;
      std::exception_ptr error;
      try {
        if (!read(piece, queue)) return;
      } catch (...) {
        error = std::current_exception();
      }
      queue.end(piece, error);
    }
  }

 private:
  bool read(std::size_t number, OrderedQueue& queue) {
    const LogPiece& piece = log_.pieces[number];
    if (source_ == nullptr || file_ != piece.file) {
      source_ = open_columns(log_.files[piece.file], extractor_.columns(), options_);
      file_ = piece.file;
    }
    source_->select(piece.group);
    while (source_->next(batch_)) {
      if (batch_.rows == 0) continue;
      LogChunk chunk = extractor_.extract(batch_);
      if (chunk.events.size() > 0) refine_(chunk);
      if (!queue.push(number, std::move(chunk))) return false;
    }
    const std::string remark = source_->remark();
    if (remark.empty()) return true;
    LogChunk last;
    last.remarks.push_back(remark);
    return queue.push(number, std::move(last));
  }

  const LogFiles& log_;
  const EventExtractor& extractor_;
  ReadOptions options_;
  const std::function<void(LogChunk&)>& refine_;
  std::unique_ptr<ColumnSource> source_;
  std::size_t file_ = 0;
  RawBatch batch_;
};

}  // namespace

void read_log(const LogFiles& log, const EventExtractor& extractor, const LogReading& reading,
              const std::function<void(LogChunk&)>& refine, const std::function<void(LogChunk)>& consume) {
  const std::size_t threads = std::min(static_cast<std::size_t>(reading.threads), log.pieces.size());
  // Few large pieces: the columns of a piece are decoded in parallel.
  ReadOptions options = extractor.options();
  options.batch_rows = reading.batch_rows;
  options.threads = threads < static_cast<std::size_t>(reading.threads);
  OrderedQueue queue(log.pieces.size(), reading.queue_bytes);
  std::atomic<std::size_t> next_piece{0};
  std::vector<std::jthread> readers;
  // Even after an exception below, waiting readers are released before they are joined.
  const std::unique_ptr<OrderedQueue, void (*)(OrderedQueue*)> stop_at_end(
      &queue, [](OrderedQueue* q) { q->stop(); });
  for (std::size_t t = 0; t < threads; ++t) {
    readers.emplace_back([&] { Reader(log, extractor, options, refine).run(next_piece, queue); });
  }
  while (auto chunk = queue.pop()) consume(std::move(*chunk));
}

}  // namespace hstu
