// Results of a batch against the CPU form: all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/device_case.h"
#include "attention/errors.h"
#include "attention/reference.h"
#include "attention/softmax_reference.h"
#include "hstu/attention/attention.h"
#include "hstu/base/random.h"
#include "hstu/kernels/dropout.h"

namespace hstu {

// One head of one sample by the CPU form in fp64.
template <typename T>
AttentionResult exact_result(const HostBatch<T>& batch, std::size_t b, int head) {
  const DeviceCase& c = batch.description();
  Matrix q = batch.matrix(b, head, kQ), k = batch.matrix(b, head, kK), v = batch.matrix(b, head, kV),
         d_o = batch.matrix(b, head, kDo);
  AttentionResult r{Matrix(q.size()), Matrix(q.size()), Matrix(q.size()), Matrix(q.size())};
  const auto rows = [&](Matrix& m) { return AttentionRows{m.data(), c.head_dim, c.head_dim}; };
  const std::array<std::int64_t, 2> offsets{0, c.lengths[b]};
  AttentionProblem p;
  p.type = AttentionType::fp64;
  p.samples = p.heads = 1, p.tokens = c.lengths[b], p.head_dim = c.head_dim;
  p.q = rows(q), p.k = rows(k), p.v = rows(v);
  p.offsets = offsets.data();
  if (!c.contexts.empty()) p.contexts = &c.contexts[b];
  if (!c.targets.empty()) p.targets = &c.targets[b];
  p.mask = c.mask;
  p.score = c.score;
  p.alpha = static_cast<double>(batch.alpha()), p.scale = batch.scale(b);
  p.dropout = batch.dropout(batch.offsets()[b]);
  p.dropout.key += static_cast<std::uint64_t>(head);  // the problem's head 0 has the draws of this one
  attention_forward(p, kHost, rows(r.o));
  attention_backward(p, kHost, {.d_o = rows(d_o), .dq = rows(r.dq), .dk = rows(r.dk), .dv = rows(r.dv)});
  return r;
}
// The same with every intermediate result rounded to T.
template <typename T>
AttentionResult rounded_result(const HostBatch<T>& batch, std::size_t b, int head) {
  const auto input = [&](InputPart part) { return batch.matrix(b, head, part); };
  if (batch.description().score == ScoreFunction::softmax) {
    const AttentionMask& mask = batch.description().mask;
    kernels::Dropout dropout = batch.dropout(batch.offsets()[b]);
    dropout.key = mix64(dropout.key + static_cast<std::uint64_t>(head));
    return reference_softmax<float>(
        batch.mask_of(b), {mask.hidden_period, mask.hidden_phase}, batch.description().head_dim, input(kQ),
        input(kK), input(kV), input(kDo), static_cast<double>(batch.alpha()), batch.scale(b),
        [](double x) { return round_to<T>(x); }, dropout);
  }
  return reference_attention<float>(batch.mask_of(b), batch.description().head_dim, input(kQ), input(kK),
                                    input(kV), input(kDo), static_cast<double>(batch.alpha()), batch.scale(b),
                                    [](double x) { return round_to<T>(x); });
}

// `outputs`: rows of o, dq, dk and dv, of all rows of the batch. Poisoned samples are left out.
template <typename T>
Errors compare_all(const HostBatch<T>& batch, const std::vector<T>& outputs) {
  const DeviceCase& c = batch.description();
  const auto heads = static_cast<std::size_t>(c.heads), size = static_cast<std::size_t>(c.head_dim);
  std::vector<Errors> found(batch.samples() * heads);
  parallel_blocks(static_cast<std::int64_t>(found.size()), 1, [&](std::int64_t at, std::int64_t) {
    const std::size_t b = static_cast<std::size_t>(at) / heads, head = static_cast<std::size_t>(at) % heads;
    if (batch.is_poisoned(b) || c.lengths[b] == 0) return;
    const AttentionResult exact = exact_result(batch, b, static_cast<int>(head));
    const AttentionResult rounded = rounded_result(batch, b, static_cast<int>(head));
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t x = 0; x < exact.o.size(); ++x) {
        const std::size_t row = static_cast<std::size_t>(batch.offsets()[b]) + x / size;
        const T value = outputs[((row * 4 + i) * heads + head) * size + x % size];
        found[static_cast<std::size_t>(at)].add(i, to_double(value), rounded[i][x], exact[i][x]);
      }
    }
  });
  Errors all;
  for (const Errors& one : found) all.merge(one);
  return all;
}

}  // namespace hstu
