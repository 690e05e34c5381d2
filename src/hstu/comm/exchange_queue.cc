#include "hstu/comm/exchange_queue.h"

#include <utility>

#include "hstu/base/thread_stacks.h"
#include "hstu/base/threads.h"

namespace hstu {

ExchangeQueue::ExchangeQueue(Communicator& host, DeviceTransport* gpus, Stream stream)
    : host_(host), gpus_(gpus), stream_(std::move(stream)) {}

ExchangeQueue::~ExchangeQueue() {
  drop();
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

ExchangeQueue::Fence ExchangeQueue::submit(std::string_view stage, const Stream& ready,
                                           std::function<void()> exchange) {
  if (gpus_ != nullptr) {
    host_.enter(stage);
    stream_.wait(ready);
    exchange();
    return gpus_->begun();
  }
  const std::scoped_lock lock(mutex_);
  if (!thread_.joinable()) {
    thread_ = std::jthread([this] {
      name_this_thread("exchanges");
      set_threads(1);  // of this thread: the others compute
      exchange_all();
    });
  }
  waiting_.push_back({stage, std::move(exchange)});
  changed_.notify_all();
  return ++submitted_;
}

void ExchangeQueue::wait(Fence fence) {
  if (gpus_ != nullptr) return gpus_->wait(fence);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= fence; });
  if (failure_) std::rethrow_exception(failure_);
}

void ExchangeQueue::order_after(Fence fence, const Stream& stream) {
  if (gpus_ == nullptr) return wait(fence);
  stream.wait(stream_);
}

void ExchangeQueue::drop() {
  std::unique_lock lock(mutex_);
  done_ += std::ssize(waiting_);
  waiting_.clear();
  changed_.wait(lock, [&] { return done_ == submitted_; });
}

void ExchangeQueue::exchange_all() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !waiting_.empty() || closed_; });
    if (waiting_.empty()) return;
    const Exchange exchange = std::move(waiting_.front());
    waiting_.pop_front();
    if (!failure_) {
      lock.unlock();
      std::exception_ptr failure;
      try {
        host_.enter(exchange.stage);
        exchange.run();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
    }
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace hstu
