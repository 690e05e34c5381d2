/* HSTU attention from C: libhstu_attention computes a small jagged batch forward and backward, and the
 * results are compared with a double loop on the CPU. examples/README.md describes how to build and run it.
 */
#include "hstu/attention.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSamples = 4, kHeads = 2, kHeadDim = 64, kWidth = kHeads * kHeadDim };
/* Sample b is rows [kOffsets[b], kOffsets[b + 1]): 5, 0, 130 and 64 tokens, no padding between them. */
static const int64_t kOffsets[kSamples + 1] = {0, 5, 5, 135, 199};
enum { kTokens = 199 };

/* One token is one row of q, k, v and the gradient of o side by side, as a layer writes them. The results o,
 * dq, dk, dv have rows of the same form. */
enum { kRow = 4 * kWidth, kElements = kTokens * kRow };
enum { kQ, kK, kV, kDo };
enum { kO, kDq, kDk, kDv };

static void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

/* Every function of the library returns 0, or 1 with a message. */
static void check_hstu(int status) {
  if (status == 0) return;
  fprintf(stderr, "%s\n", hstu_attention_error());
  exit(1);
}

/* bf16 is the upper half of a float. */
static uint16_t to_bf16(float x) {
  union {
    float number;
    uint32_t bits;
  } u = {x};
  return (uint16_t)((u.bits + 0x7fff + ((u.bits >> 16) & 1)) >> 16);
}
static double from_bf16(uint16_t x) {
  union {
    uint32_t bits;
    float number;
  } u = {(uint32_t)x << 16};
  return u.number;
}

static size_t place(int64_t token, int part, int head) {
  return (size_t)(token * kRow + part * kWidth + head * kHeadDim);
}

/* Part `part` of the rows at `base`, in the form that the library takes. */
static hstu_rows part_of(uint16_t* base, int part) {
  hstu_rows rows = {base + part * kWidth, kRow, kHeadDim};
  return rows;
}

static double dot(const uint16_t* a, const uint16_t* b) {
  double sum = 0;
  for (int d = 0; d < kHeadDim; ++d) sum += from_bf16(a[d]) * from_bf16(b[d]);
  return sum;
}
static void add(double* to, double factor, const uint16_t* row) {
  for (int d = 0; d < kHeadDim; ++d) to[d] += factor * from_bf16(row[d]);
}

/* The definition: query i sees the keys j <= i of its sample (causal). */
static void attention_on_cpu(const uint16_t* in, double alpha, double scale, double* out) {
  for (int b = 0; b < kSamples; ++b)
    for (int head = 0; head < kHeads; ++head)
      for (int64_t i = kOffsets[b]; i < kOffsets[b + 1]; ++i)
        for (int64_t j = kOffsets[b]; j <= i; ++j) {
          const uint16_t *q = in + place(i, kQ, head), *d_o = in + place(i, kDo, head);
          const uint16_t *k = in + place(j, kK, head), *v = in + place(j, kV, head);
          const double x = alpha * dot(q, k), sigmoid = 1 / (1 + exp(-x));
          const double p = scale * x * sigmoid; /* scale * silu(x) */
          const double dp = scale * dot(d_o, v);
          const double ds = alpha * dp * sigmoid * (1 + x * (1 - sigmoid)); /* through silu's derivative */
          add(out + place(i, kO, head), p, v);
          add(out + place(j, kDv, head), p, d_o);
          add(out + place(i, kDq, head), ds, k);
          add(out + place(j, kDk, head), ds, q);
        }
}

/* Prints the largest difference and the largest value; returns 1 when the first is over 2 % of the second. */
static int differs(const char* name, int part, const uint16_t* found, const double* expected) {
  double difference = 0, largest = 0;
  for (int64_t t = 0; t < kTokens; ++t)
    for (int i = 0; i < kWidth; ++i) {
      const size_t at = place(t, part, 0) + (size_t)i;
      const double d = fabs(from_bf16(found[at]) - expected[at]);
      if (!(d <= difference)) difference = d; /* NaN stays */
      if (fabs(expected[at]) > largest) largest = fabs(expected[at]);
    }
  printf("%-2s  largest difference %.2e, largest value %.2e\n", name, difference, largest);
  return !(difference <= 0.02 * largest);
}

int main(void) {
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found != cudaSuccess || devices == 0) {
    fprintf(stderr, "no GPU here, nothing to compute on: %s\n", cudaGetErrorString(found));
    return 1;
  }

  uint16_t* in = malloc(kElements * sizeof *in);
  uint16_t* out = malloc(kElements * sizeof *out);
  double* expected = calloc(kElements, sizeof *expected);
  if (in == NULL || out == NULL || expected == NULL) return 1;
  srand(1);
  for (int i = 0; i < kElements; ++i) in[i] = to_bf16(4 * ((float)rand() / (float)RAND_MAX) - 2);

  /* 1. Everything is in device memory, the offsets too. */
  uint16_t *device_in = NULL, *device_out = NULL;
  int64_t* device_offsets = NULL;
  check_cuda(cudaMalloc((void**)&device_in, kElements * sizeof *in), "cudaMalloc");
  check_cuda(cudaMalloc((void**)&device_out, kElements * sizeof *out), "cudaMalloc");
  check_cuda(cudaMalloc((void**)&device_offsets, sizeof kOffsets), "cudaMalloc");
  check_cuda(cudaMemcpy(device_in, in, kElements * sizeof *in, cudaMemcpyHostToDevice), "cudaMemcpy");
  check_cuda(cudaMemcpy(device_offsets, kOffsets, sizeof kOffsets, cudaMemcpyHostToDevice), "cudaMemcpy");

  /* 2. The problem: sizes, rows, mask. The defaults are causal bf16. */
  hstu_attention_problem problem;
  hstu_attention_problem_init(&problem);
  problem.samples = kSamples;
  problem.tokens = kTokens;
  problem.heads = kHeads;
  problem.head_dim = kHeadDim;
  problem.longest = 130;
  problem.q = part_of(device_in, kQ);
  problem.k = part_of(device_in, kK);
  problem.v = part_of(device_in, kV);
  problem.offsets = device_offsets;
  problem.alpha = 1 / sqrtf(kHeadDim);
  problem.scale = 1.0f / 130;

  char line[256];
  check_hstu(hstu_attention_explain(&problem, line, sizeof line));
  printf("%s\n", line);

  /* 3. The library allocates nothing: the caller brings scratch memory of the size that it asks for. */
  int64_t forward_bytes = 0, backward_bytes = 0;
  check_hstu(hstu_attention_workspace(&problem, &forward_bytes, &backward_bytes));
  const int64_t bytes = forward_bytes > backward_bytes ? forward_bytes : backward_bytes;
  void* workspace = NULL;
  if (bytes > 0) check_cuda(cudaMalloc(&workspace, (size_t)bytes), "cudaMalloc");

  /* 4. Both passes, one after the other in a stream. */
  cudaStream_t stream = NULL;
  check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  const hstu_rows o = part_of(device_out, kO), d_o = part_of(device_in, kDo);
  const hstu_rows dq = part_of(device_out, kDq), dk = part_of(device_out, kDk), dv = part_of(device_out, kDv);
  check_hstu(
      hstu_attention_check(&problem, stream)); /* while you look for mistakes: it waits for the stream */
  check_hstu(hstu_attention_forward(&problem, &o, workspace, bytes, stream));
  check_hstu(hstu_attention_backward(&problem, &d_o, &dq, &dk, &dv, workspace, bytes, stream));
  check_cuda(cudaStreamSynchronize(stream), "the kernels");
  check_cuda(cudaMemcpy(out, device_out, kElements * sizeof *out, cudaMemcpyDeviceToHost), "cudaMemcpy");

  /* 5. Against the definition. */
  attention_on_cpu(in, (double)problem.alpha, (double)problem.scale, expected);
  int wrong = differs("o", kO, out, expected);
  wrong |= differs("dq", kDq, out, expected);
  wrong |= differs("dk", kDk, out, expected);
  wrong |= differs("dv", kDv, out, expected);
  printf("%s\n",
         wrong ? "DIFFERENT: more than 2 % of the largest value" : "equal within 2 % of the largest value");

  cudaStreamDestroy(stream);
  cudaFree(workspace);
  cudaFree(device_offsets);
  cudaFree(device_out);
  cudaFree(device_in);
  free(expected);
  free(out);
  free(in);
  return wrong;
}
