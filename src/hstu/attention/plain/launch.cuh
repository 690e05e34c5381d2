// How the plain kernels are launched: the head size and the type that they compute with.
#pragma once

#include <type_traits>

#include "hstu/attention/plain/tile.cuh"

namespace hstu::cuda {

template <typename T>
bool takes_quads(const AttentionInput& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % (4 * sizeof(T)) == 0 && rows.row_stride % 4 == 0 &&
         rows.head_stride % 4 == 0;
}

struct PlainRows {
  AttentionInput own[2], other[2];
  AttentionRows sums[2];
  bool accumulate;
};

template <typename T>
PlainArguments<T> plain_arguments(const AttentionProblem& p, const PlainRows& r) {
  bool quads = p.head_dim % 4 == 0;
  for (int i = 0; i < 2; ++i)
    quads = quads && takes_quads<T>(r.own[i]) && takes_quads<T>(r.other[i]) && takes_quads<T>(r.sums[i]);
  const auto out = [](const AttentionRows& rows) {
    return Rows<T>{static_cast<T*>(rows.data), rows.row_stride, rows.head_stride};
  };
  return {.samples = samples_of(p),
          .query_offsets = p.offsets_of_queries(),
          .own = {rows_of<T>(r.own[0]), rows_of<T>(r.own[1])},
          .other = {rows_of<T>(r.other[0]), rows_of<T>(r.other[1])},
          .sums = {out(r.sums[0]), out(r.sums[1])},
          .alpha = static_cast<float>(p.alpha),
          .head_dim = static_cast<std::int32_t>(p.head_dim),
          .quads = quads,
          .accumulate = r.accumulate};
}

// The blocks of plain_place.
template <PlainRole kRole, int kD>
dim3 plain_blocks(const AttentionProblem& p) {
  const std::int64_t rows = kRole == PlainRole::key_gradient ? p.tokens : p.query_rows();
  return {static_cast<unsigned>(rows / PlainLayout<kRole, kD>::kOwn + p.samples),
          static_cast<unsigned>(p.heads)};
}

// Launches the role's kernel, with `bias` where the problem has one. `beside`: launch_beside.
template <PlainRole kRole, int kD, typename T>
void launch_plain(const char* what, const AttentionProblem& p, const PlainRows& rows, const Bias* bias,
                  bool beside, cudaStream_t stream) {
  const auto launch_with = [&]<typename Arguments>(const Arguments& arguments) {
    if (beside)
      launch_beside(what, plain_kernel<kRole, kD, T, Arguments>, plain_blocks<kRole, kD>(p), kPlainThreads,
                    stream, arguments);
    else
      launch(what, plain_kernel<kRole, kD, T, Arguments>, plain_blocks<kRole, kD>(p), kPlainThreads, stream,
             arguments);
  };
  const PlainArguments<T> arguments = plain_arguments<T>(p, rows);
  if (bias == nullptr)
    launch_with(arguments);
  else
    launch_with(BiasedPlainArguments<T>{arguments, *bias});
}

// Calls body.template operator()<T, head size>(). Types of 16 bits come here only where no kernel for tensor
// cores takes the problem: fp16 has fewer sizes, bf16 all up to 64, because models with small heads train in
// it.
template <typename Body>
void with_plain_form(const AttentionProblem& p, const Body& body) {
  const auto with_half = [&]<typename T>() {
    if (p.head_dim <= 64)
      body.template operator()<T, 64>();
    else
      body.template operator()<T, 256>();
  };
  if (p.type == AttentionType::bf16 && p.head_dim <= 16)
    body.template operator()<__nv_bfloat16, 16>();
  else if (p.type == AttentionType::bf16 && p.head_dim <= 32)
    body.template operator()<__nv_bfloat16, 32>();
  else if (p.type == AttentionType::bf16)
    with_half.template operator()<__nv_bfloat16>();
  else if (p.type == AttentionType::fp16)
    with_half.template operator()<__half>();
  else if (p.head_dim <= 16)
    body.template operator()<float, 16>();
  else if (p.head_dim <= 32)
    body.template operator()<float, 32>();
  else if (p.head_dim <= 64)
    body.template operator()<float, 64>();
  else if (p.head_dim <= 128)
    body.template operator()<float, 128>();
  else
    body.template operator()<float, 256>();
}

}  // namespace hstu::cuda
