#include "hstu/ops/gather_keys.h"

#include <span>

#include "hstu/kernels/copy_rows.h"
#include "hstu/kernels/gather_sum.h"
#include "hstu/ops/exchange_bytes.h"
#include "hstu/ops/give_columns.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

constexpr auto kGather = Operation::gather_keys;

// The rows of one side of the exchange, and how many of them are of each rank.
struct Side {
  Tensor rows;
  std::vector<std::int64_t> bytes;

  Side(const std::vector<std::int64_t>& of_ranks, std::int64_t width, DType type, const Context& context)
      : bytes(of_ranks) {
    std::int64_t all = 0;
    for (std::int64_t& count : bytes) {
      all += count;
      count *= width * static_cast<std::int64_t>(size_of(type));
    }
    rows = Tensor::empty({all, width}, type, context);
  }
};

void exchange(const Side& from, const Side& to, const Group& group, const Context& context) {
  exchange_bytes(from.rows, from.bytes, to.rows, to.bytes, group, context);
}

// (K, W) from x (T_r, W), rows `stride` apart.
template <typename T, typename DeviceStream>
Tensor keys_of(const T* x, std::int64_t stride, std::int64_t width, DType type, const DividedKeys& keys,
               const Group& group, const Context& context, DeviceStream stream) {
  Side given(keys.given, width, type, context);
  kernels::copy_rows(kernels::CopyRows<T>{.rows = keys.given_rows.size(),
                                          .width = width,
                                          .x = x,
                                          .x_stride = stride,
                                          .from = keys.given_rows.data<std::int32_t>(),
                                          .to = keys.places.data<std::int64_t>(),
                                          .y = given.rows.mutable_data<T>()},
                     stream);
  const Side received(keys.received, width, type, context);
  exchange(given, received, group, context);
  Tensor y = Tensor::empty({keys.keys.size(), width}, type, context);
  const kernels::GatherRows<T> gathered{.tokens = keys.keys.size(),
                                        .width = width,
                                        .rows = received.rows.data<T>(),
                                        .count = received.rows.rows(),
                                        .index = keys.keys.data<std::int32_t>(),
                                        .y = y.mutable_data<T>(),
                                        .stride = width};
  kernels::gather_rows(std::span(&gathered, 1), stream);
  return y;
}

// y[r]: the sum of x[t] over the t whose `index` is r, ascending.
template <typename T, typename DeviceStream>
void sum_rows(const Tensor& x, const Tensor& index, Tensor& y, DeviceStream stream) {
  const kernels::ScatterAdd<T> p{.tokens = x.rows(),
                                 .width = x.cols(),
                                 .dy = x.data<T>(),
                                 .stride = x.cols(),
                                 .index = index.data<std::int32_t>(),
                                 .count = y.rows(),
                                 .drows = {.to = y.mutable_data<T>()}};
  kernels::scatter_add(std::span(&p, 1), stream);
}

// The gradient of this rank's rows from dy (K, W): y (T_r, W), rows `stride` apart.
template <typename T, typename DeviceStream>
void sum_of_ranks(const Tensor& dy, const DividedKeys& keys, const Group& group, T* y, std::int64_t stride,
                  const Context& context, DeviceStream stream) {
  Side received(keys.received, dy.cols(), dy.dtype(), context),
      given(keys.given, dy.cols(), dy.dtype(), context);
  sum_rows<T>(dy, keys.keys, received.rows, stream);
  exchange(received, given, group, context);
  Tensor sums = Tensor::empty({keys.own.size(), dy.cols()}, dy.dtype(), context);
  sum_rows<T>(given.rows, keys.given_rows, sums, stream);
  const kernels::GatherRows<T> placed{.tokens = sums.rows(),
                                      .width = sums.cols(),
                                      .rows = sums.data<T>(),
                                      .count = sums.rows(),
                                      .index = keys.own.data<std::int32_t>(),
                                      .y = y,
                                      .stride = stride};
  kernels::gather_rows(std::span(&placed, 1), stream);
}

}  // namespace

Variable gather_keys(Tape& tape, const Columns& x, const DividedKeys& keys, const Group& group) {
  require(x.rows() == keys.own.size() && std::ssize(keys.given) == group.size() &&
              std::ssize(keys.received) == group.size(),
          "gather_keys: expected {} rows and {} ranks, found {} rows, and {} and {} ranks", keys.own.size(),
          group.size(), x.rows(), keys.given.size(), keys.received.size());
  const Context& context = tape.context();
  check_devices<kGather>(context, x.variable, keys.keys, keys.given_rows);
  const DType type = x.variable.value().dtype();
  const auto gathered = [=] {
    Tensor y;
    dispatch<kGather>(context, type, [&]<typename T>(auto stream) {
      y = keys_of<T>(x.data<T>(), x.stride(), x.width(), type, keys, group, context, stream);
    });
    return y;
  };
  Variable y = tape.record(gathered(), {x.variable}, [=](const Tensor& dy) {
    dispatch<kGather>(context, type, [&]<typename T>(auto stream) {
      give_columns<T>(x, context, stream, [&](T* to, std::int64_t stride) {
        sum_of_ranks<T>(dy, keys, group, to, stride, context, stream);
      });
    });
  });
  if (y.needs_gradient()) y.recomputed_by(gathered);
  return y;
}

}  // namespace hstu::ops
