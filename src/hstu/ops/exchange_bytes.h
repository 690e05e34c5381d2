// The messages under exchanges of rows between the ranks of a group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/comm/groups.h"
#include "hstu/tensor/context.h"
#include "hstu/tensor/tensor.h"

namespace hstu::ops {

// (ranks) the bytes of so many rows of `of` for each rank.
std::vector<std::int64_t> bytes_of_rows(std::vector<std::int64_t> rows, const Tensor& of);

// Sends sent[r] bytes of `from` to rank r, one rank after another, and receives received[r] bytes from it in
// the same way. Where every rank gets all of `from`, `sent` is empty. All ranks of the group call it
// together. In a dry run nothing moves.
void exchange_bytes(const Tensor& from, std::span<const std::int64_t> sent, const Tensor& to,
                    std::span<const std::int64_t> received, const Group& group, const Context& context);

// The same, but the bytes for this rank itself are neither read in `from` nor written in `to`.
void exchange_bytes_of_others(const Tensor& from, std::span<const std::int64_t> sent, const Tensor& to,
                              std::span<const std::int64_t> received, const Group& group,
                              const Context& context);

// Sends and receives these messages: by rank, and those of a rank in the same order on both sides. What a
// rank sends itself is copied.
void exchange_messages(const std::vector<DeviceMessage>& sends, const std::vector<DeviceMessage>& receives,
                       const Group& group, const Context& context);

// An exchange beside what is put on the context's stream until finish(), which may neither write what is sent
// nor touch what is received. On processors all of it happens in the constructor.
class ExchangeBeside {
 public:
  // exchange(context): one of the functions above, with a stream of its own.
  template <typename Exchange>
  ExchangeBeside(const Group& group, const Context& context, const Exchange& exchange)
      : context_(context), beside_(begin(group)) {
    Context other = context;
    other.stream = beside_;
    exchange(other);
  }
  ~ExchangeBeside();
  ExchangeBeside(const ExchangeBeside&) = delete;
  ExchangeBeside& operator=(const ExchangeBeside&) = delete;

  // What is put on the context's stream from now on finds complete what is received.
  void finish();

 private:
  Stream begin(const Group& group);

  Context context_;
  bool is_under_way_ = false;
  Stream beside_;
};

}  // namespace hstu::ops
