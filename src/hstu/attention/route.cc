#include "hstu/attention/route.h"

#include <algorithm>
#include <cstdint>

#include "hstu/attention/checks.h"
#include "hstu/attention/cuda/limits.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

// Why the kernels for tensor cores cannot compute the problem; "" if they can.
std::string not_for_tensor_cores(const AttentionProblem& p) {
  if (p.type == AttentionType::fp32) return "fp32 has no tensor core route";
  if (p.head_dim != 32 && p.head_dim != 64 && p.head_dim != 128 && p.head_dim != 256)
    return fmt::format("head size {} is none of 32, 64, 128, 256", p.head_dim);
  if (p.bias.time_table != nullptr && p.bias.buckets > cuda::kTensorBuckets)
    return fmt::format("{} thresholds of times, more than {}", p.bias.buckets, cuda::kTensorBuckets);
  for (const AttentionInput* rows : {&p.q, &p.k, &p.v}) {
    if (!is_aligned(*rows)) return "q, k or v is not aligned to 16 bytes, or a stride is no multiple of 8";
  }
  return "";
}

// Why the kernels for tensor cores cannot compute a softmax, beside that; "" if they can.
std::string not_for_tensor_softmax(const AttentionProblem& p) {
  if (p.head_dim > cuda::kSoftmaxTensorHead)
    return fmt::format("a softmax with head size {}, more than {}", p.head_dim, cuda::kSoftmaxTensorHead);
  if (!(p.alpha > 0)) return fmt::format("a softmax with alpha {}, which is not above 0", p.alpha);
  if (p.bias.any()) return "a softmax with a relative bias";
  if (p.query_offsets != nullptr) return "a softmax with query offsets";
  return "";
}

std::string too_long(const AttentionProblem& p, std::int64_t most) {
  const std::int64_t longest = p.longest > 0 ? p.longest : p.tokens;
  return longest <= most ? "" : fmt::format("a sample may have {} tokens, more than {}", longest, most);
}

// Why the kernels for few queries cannot compute a problem with query offsets; "" if they can.
std::string not_for_few_queries(const AttentionProblem& p) {
  if (p.bias.any()) return "query offsets with a relative bias";
  if (p.query_first != nullptr) return "queries that are not the last tokens";
  if (p.type != AttentionType::bf16) return "query offsets in another type than bf16";
  if (!cuda::is_head_of_few_queries(p.head_dim))
    return fmt::format("query offsets with head size {}, which is none of 32, 64, 128, 256", p.head_dim);
  for (const AttentionInput* rows : {&p.q, &p.k, &p.v}) {
    if (!is_aligned(*rows)) return "q, k or v is not aligned to 16 bytes, or a stride is no multiple of 8";
  }
  return "";
}

// Whether the kernels of queries (few_queries/queries.h) compute the forward pass of a problem without a
// past.
bool fits_queries(const AttentionProblem& p, const AttentionDevice& device) {
  return device.major == 9 && p.type == AttentionType::bf16 && p.score == ScoreFunction::silu &&
         (p.head_dim == 64 || p.head_dim == 128 || p.head_dim == 256) && !p.bias.any() &&
         p.dropout.rate == 0 && p.mask.hidden_period == 0 && p.query_first == nullptr && is_aligned(p.q) &&
         is_aligned(p.k) && is_aligned(p.v);
}

// Whether they are to: in place of those pair by pair, or of those for few queries where the queries of a
// sample fill tiles.
bool has_tiles_of_queries(const AttentionProblem& p, const AttentionDevice& device) {
  constexpr std::int64_t kFrom = 16;  // queries of a sample, on average
  if (!fits_queries(p, device)) return false;
  if (!p.past.any()) return p.query_offsets != nullptr && p.queries >= kFrom * p.samples;
  // Boxes of the tensor copy engine, which have whole periods of its swizzle, are in one page each.
  return p.mask.left < 0 && p.mask.right == 0 && p.contexts == nullptr && p.past.page_tokens % 8 == 0 &&
         is_aligned({p.past.k, p.past.row_stride, p.past.head_stride}) &&
         is_aligned({p.past.v, p.past.row_stride, p.past.head_stride});
}

// In place of the kernels for Hopper, whose longest tile alone takes most of the time where there are few:
// the keys of a tile are shared out (docs/performance/serving.md).
bool has_few_long_tiles(const AttentionProblem& p, const AttentionDevice& device) {
  constexpr std::int64_t kRows = 256, kFrom = 1024;  // of two blocks for Hopper; tokens of a sample
  const std::int64_t each = p.tokens / std::max<std::int64_t>(p.samples, 1),
                     tiles = p.samples * ((each + kRows - 1) / kRows) * p.heads;
  return fits_queries(p, device) && p.head_dim == 256 && p.mask.right == 0 && each >= kFrom &&
         4 * tiles <= 3 * device.multiprocessors;
}

// Whether a block for each row is the fastest for what is computed pair by pair otherwise: keys and values
// are read for each row, not for 16 of a sample, but a block is done in a fifteenth of the time.
bool has_few_rows(const AttentionProblem& p, const AttentionDevice& device) {
  constexpr std::int64_t kBelow = 16;             // queries of a sample, on average
  constexpr std::int64_t kOfMultiprocessor = 32;  // queries and heads, which take 16 turns there
  return p.past.any() && p.mask.hidden_period == 0 && p.dropout.rate == 0 &&
         (p.query_rows() < kBelow * p.samples ||
          p.query_rows() * p.heads <= kOfMultiprocessor * device.multiprocessors);
}

// The same for the kernels for Hopper and for mma.sync, given that not_for_tensor_cores is "".
std::string not_hopper(const AttentionProblem& p, const AttentionDevice& device) {
  if (device.major != 9)
    return fmt::format("compute capability {}.{} is not 9.0", device.major, device.minor);
  return too_long(p, cuda::kLongestSample);
}
std::string not_mma(const AttentionProblem& p, const AttentionDevice& device) {
  if (device.major < 8)
    return fmt::format("compute capability {}.{} is below 8.0", device.major, device.minor);
  if ((p.tokens / 64 + p.samples) * p.heads >= (std::int64_t{1} << 30))
    return fmt::format("{} samples of {} heads are more than a launch has blocks", p.samples, p.heads);
  return too_long(p, std::int64_t{64} << cuda::kTileBits);
}

// Two blocks that share a tile read half as much from the L2 cache, but the rows of their larger tile beyond
// the end of a short sample cost time (docs/performance/attention.md gives both, by length).
int hopper_forward_cluster(const AttentionProblem& p) {
  constexpr std::int64_t kFrom = 256;  // tokens of a sample, on average
  return p.head_dim >= 128 && p.tokens >= kFrom * p.samples ? 2 : 1;
}

// Their backward pass reads what only a forward pass on tensor cores writes.
AttentionRoute with_softmax_backward(const AttentionProblem& p, AttentionRoute route) {
  if (p.score != ScoreFunction::softmax || p.log_sums != nullptr) return route;
  route.backward = AttentionKernel::softmax;
  route.why += ", backward pair by pair (no log_sums)";
  return route;
}

// Of the kernels that the problem asks for. UsageError if they do not compute it.
AttentionRoute chosen_route(const AttentionProblem& p, const AttentionDevice& device) {
  const std::string word = word_of(kAttentionChoices, p.kernels),
                    why = "chosen by attention = \"" + word + "\"";
  if (p.kernels == AttentionChoice::plain) return {AttentionKernel::plain, AttentionKernel::plain, why};
  const bool is_hopper = p.kernels == AttentionChoice::hopper, is_few = p.query_offsets != nullptr;
  std::string problem = is_few ? not_for_few_queries(p) : not_for_tensor_cores(p);
  if (problem.empty() && p.score == ScoreFunction::softmax) problem = not_for_tensor_softmax(p);
  if (problem.empty()) problem = is_hopper ? not_hopper(p, device) : not_mma(p, device);
  if (problem.empty() && is_hopper && p.bias.any() && p.head_dim > 64)
    problem = fmt::format("a relative bias with head size {}, whose backward pass has too few registers",
                          p.head_dim);
  if (!problem.empty()) fail_usage("attention = \"{}\": {}; use auto", word, problem);
  if (is_few) return {AttentionKernel::few_queries, AttentionKernel::few_queries, why + ": few queries"};
  AttentionRoute route{AttentionKernel::mma, AttentionKernel::mma, why};
  if (is_hopper) route = {AttentionKernel::hopper, AttentionKernel::hopper, why, hopper_forward_cluster(p)};
  return with_softmax_backward(p, route);
}

// Whether sums of SiLU, or a softmax too, are computed pair by pair on a GPU.
bool is_by_pairs(const AttentionProblem& p) {
  return p.past.any() || p.dropout.rate > 0 || (p.score == ScoreFunction::silu && p.mask.hidden_period > 0);
}

// The route of a softmax that no kernel was chosen for.
AttentionRoute route_of_softmax(const AttentionProblem& p, const AttentionDevice& device) {
  std::string other = p.past.any() ? "cached keys" : not_for_tensor_softmax(p);
  if (other.empty()) other = not_for_tensor_cores(p);
  if (other.empty() && not_hopper(p, device).empty())
    return with_softmax_backward(p, {AttentionKernel::hopper, AttentionKernel::hopper,
                                     "kernels for Hopper with a softmax", hopper_forward_cluster(p)});
  if (other.empty() && p.dropout.rate > 0)
    other = "dropout, which on tensor cores Hopper's kernels alone compute (" + not_hopper(p, device) + ")";
  if (other.empty()) other = not_mma(p, device);
  if (other.empty())
    return with_softmax_backward(
        p, {AttentionKernel::mma, AttentionKernel::mma, "kernels for mma.sync with a softmax"});
  return {AttentionKernel::softmax, AttentionKernel::softmax, "softmax pair by pair: " + other};
}

// The route of a problem on a GPU by its sizes.
AttentionRoute route_on_gpu(const AttentionProblem& p, const AttentionDevice& device) {
  const bool on_cuda_cores = p.kernels == AttentionChoice::automatic || p.kernels == AttentionChoice::plain;
  const bool is_softmax = p.score == ScoreFunction::softmax;
  if (p.kernels == AttentionChoice::automatic && is_softmax) return route_of_softmax(p, device);
  if (on_cuda_cores && (is_softmax || is_by_pairs(p)))
    return {AttentionKernel::softmax, AttentionKernel::softmax, "kernels pair by pair"};
  if (p.kernels != AttentionChoice::automatic) return chosen_route(p, device);
  if (p.query_offsets != nullptr) {
    const std::string other = not_for_few_queries(p);
    if (!other.empty()) return {AttentionKernel::plain, AttentionKernel::plain, "plain kernels: " + other};
    return {AttentionKernel::few_queries, AttentionKernel::few_queries, "kernels for few queries"};
  }
  const std::string neither = not_for_tensor_cores(p);
  if (!neither.empty()) return {AttentionKernel::plain, AttentionKernel::plain, "plain kernels: " + neither};
  const std::string no_hopper = not_hopper(p, device), no_mma = not_mma(p, device);
  const AttentionKernel second = no_mma.empty() ? AttentionKernel::mma : AttentionKernel::plain;
  if (!no_hopper.empty()) {
    return {second, second,
            no_mma.empty() ? "kernels for mma.sync: " + no_hopper : "plain kernels: " + no_mma};
  }
  // With a bias a thread has too few registers for large heads.
  if (p.bias.any() && p.head_dim > 128)
    return {second, second, "a relative bias with head size 256 by " + to_string(second)};
  AttentionRoute route{AttentionKernel::hopper, AttentionKernel::hopper, "kernels for Hopper",
                       hopper_forward_cluster(p)};
  if (route.forward_cluster > 1) route.why += ", forward two blocks to a tile";
  if (p.bias.any() && p.head_dim > 64) {
    route.backward = second;
    route.why += ", backward with a relative bias by " + to_string(second);
    return route;
  }
  if (p.deterministic) route.why += ", backward dQ added up in one order (deterministic)";
  return route;
}

// The sums of the other kernels for GPUs are divided by where a row is in its sample, and by how many there
// are.
constexpr KernelSupport kSupport[] = {
    {.kernel = AttentionKernel::cpu,
     .softmax = true,
     .bias = true,
     .past = true,
     .hidden_keys = true,
     .row_stable = true,
     .dropout = true},
    {.kernel = AttentionKernel::hopper,
     .softmax = true,
     .bias = true,
     .softmax_of_hidden_keys = true,
     .softmax_with_dropout = true},
    {.kernel = AttentionKernel::mma, .softmax = true, .bias = true, .softmax_of_hidden_keys = true},
    {.kernel = AttentionKernel::few_queries},
    {.kernel = AttentionKernel::plain, .bias = true},
    {.kernel = AttentionKernel::softmax,
     .softmax = true,
     .bias = true,
     .past = true,
     .hidden_keys = true,
     .dropout = true},
    {.kernel = AttentionKernel::single_rows, .softmax = true, .bias = true, .past = true, .row_stable = true},
    {.kernel = AttentionKernel::queries, .past = true}};

}  // namespace

std::span<const KernelSupport> kernel_support() {
  return kSupport;
}

std::string missing_support(const AttentionProblem& p, AttentionKernel kernel) {
  const auto has = std::find_if(std::begin(kSupport), std::end(kSupport),
                                [&](const KernelSupport& row) { return row.kernel == kernel; });
  require(has != std::end(kSupport), "attention: the kernel {} has no row", to_string(kernel));
  if (p.score == ScoreFunction::softmax && !has->softmax) return "softmax scores";
  if (p.bias.any() && !has->bias) return "a relative bias";
  if (p.past.any() && !has->past) return "cached keys";
  const bool is_softmax = p.score == ScoreFunction::softmax;
  const bool hides = has->hidden_keys || (has->softmax_of_hidden_keys && is_softmax);
  const bool drops = has->dropout || (has->softmax_with_dropout && is_softmax);
  if (p.mask.hidden_period > 0 && !hides) return "hidden keys";
  if (p.row_stable && !has->row_stable) return "rows whose bits depend on nothing else (row_stable)";
  if (p.dropout.rate > 0 && !drops) return "dropout of the weights";
  return "";
}

bool is_aligned(const AttentionInput& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.row_stride % 8 == 0 &&
         rows.head_stride % 8 == 0;
}

AttentionRoute choose_attention(const AttentionProblem& p, const AttentionDevice& device) {
  if (device.is_host()) {
    check_attention(p);
    if (p.kernels != AttentionChoice::automatic)
      fail_usage("attention = \"{}\": the host has one form of attention; use auto",
                 word_of(kAttentionChoices, p.kernels));
    check(p.type == AttentionType::fp32 || p.type == AttentionType::fp64,
          "attention: the CPU computes in fp32 and fp64 only");
    return {AttentionKernel::cpu, AttentionKernel::cpu, "the CPU form: the tensors are in host memory"};
  }
  check_attention_on_gpu(p);
  AttentionRoute route = route_on_gpu(p, device);
  const bool is_of_few = route.forward == AttentionKernel::few_queries ||
                         (route.forward == AttentionKernel::softmax && p.past.any());
  const bool is_hopper = route.forward == AttentionKernel::hopper;
  if (p.kernels == AttentionChoice::automatic &&
      ((is_of_few && has_tiles_of_queries(p, device)) || (is_hopper && has_few_long_tiles(p, device)))) {
    route.forward = AttentionKernel::queries;
    route.forward_cluster = 1;
    route.why += ", forward on tensor cores: tiles of queries";
  }
  if (route.forward == AttentionKernel::softmax && p.kernels == AttentionChoice::automatic &&
      has_few_rows(p, device)) {
    route.forward = AttentionKernel::single_rows;
    route.why += ", forward row by row: few queries";
  }
  if (p.row_stable) {
    route.forward = AttentionKernel::single_rows;
    route.forward_cluster = 1;
    route.why += ", forward row by row (row_stable)";
  }
  // What no kernel for GPUs computes yet is refused rather than left out.
  AttentionProblem backward = p;
  backward.row_stable = false;
  std::string missing = missing_support(p, route.forward);
  if (missing.empty()) missing = missing_support(backward, route.backward);
  if (!missing.empty() && p.kernels != AttentionChoice::automatic)
    fail_usage("attention = \"{}\": the {} kernels do not compute {}; use auto",
               word_of(kAttentionChoices, p.kernels), to_string(route.forward), missing);
  check(missing.empty(),
        "attention: the {} kernels for GPUs do not compute {}: use the host (device = \"host\")",
        to_string(route.forward), missing);
  return route;
}

AttentionDevice device_as(const AttentionDevice& real, const AttentionDevice& asked) {
  const bool runs = asked.major == 9 ? real.major == 9 : asked.major < 8 || real.major >= 8;
  if (!runs) {
    fail_usage("kernels for compute capability {}.{} do not run on this GPU, whose own is {}.{}", asked.major,
               asked.minor, real.major, real.minor);
  }
  return {asked.major, asked.minor, real.multiprocessors};
}

std::string to_string(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::cpu:
      return "cpu";
    case AttentionKernel::hopper:
      return "hopper";
    case AttentionKernel::mma:
      return "mma";
    case AttentionKernel::few_queries:
      return "few_queries";
    case AttentionKernel::plain:
      return "plain";
    case AttentionKernel::softmax:
      return "softmax";
    case AttentionKernel::single_rows:
      return "single_rows";
    case AttentionKernel::queries:
      return "queries";
  }
  return "unknown";
}

}  // namespace hstu
