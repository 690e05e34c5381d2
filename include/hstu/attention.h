/* Jagged HSTU attention on NVIDIA GPUs, for programs in any language: pointers, strides and a CUDA stream.
 *
 *   O_i = scale * sum over the keys j that query i sees of silu(alpha q_i . k_j + bias_ij) * v_j
 *
 * per sample and head, without softmax. bias_ij is 0, or the sum of position_table[positions - 1 + j - i],
 * with the tokens counted in the sample and j - i clamped to the table, and time_table[b], with b the number
 * of thresholds up to |query_time_i - key_time_j|.
 *
 * The shared library needs the NVIDIA driver and no other library of CUDA. No function but
 * hstu_attention_check synchronises, and none allocates device memory or changes the current device, so that
 * calls can be captured in a CUDA graph. Functions may be called from several threads at once.
 * docs/attention.md describes the masks and which kernels are used where. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HSTU_API __attribute__((visibility("default")))
#else
#define HSTU_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { HSTU_BF16 = 0, HSTU_FP16 = 1, HSTU_FP32 = 2 } hstu_type;

/* Rows of (T, H, D) in device memory: element (t, head, d) is data[t * row_stride + head * head_stride + d].
 * Strides count elements and are not negative, so that slices of a wider row are possible. `data` is aligned
 * to the size of an element. Kernels for tensor cores also need `data` aligned to 16 bytes and strides in
 * multiples of 8; q, k and v that are not go to the slow kernels, outputs and d_o that are not are refused.
 * The rows of an output must not share memory with each other, with another output or with an input. */
typedef struct {
  void* data;
  int64_t row_stride;
  int64_t head_stride;
} hstu_rows;

/* Call hstu_attention_problem_init first: it writes the defaults, which the comments give in brackets. */
typedef struct {
  size_t size;      /* [sizeof(hstu_attention_problem)] tells the library which header the caller uses */
  hstu_type type;   /* [HSTU_BF16] of q, k, v, o and their gradients; sums are fp32 */
  int64_t samples;  /* [0] B */
  int64_t tokens;   /* [0] T: rows of k and v, at least offsets[B] */
  int64_t queries;  /* [0] with query_offsets the rows of q and o, at least query_offsets[B]; else unused */
  int64_t heads;    /* [0] H */
  int64_t head_dim; /* [0] D, of q, k and v: 1 to 256 */
  int64_t longest;  /* [0] an upper bound of the tokens of a sample; 0: T */
  hstu_rows q, k, v;
  /* Arrays in device memory, aligned to the size of their elements. */
  const int64_t* offsets; /* (B + 1) ascending: sample b is rows [offsets[b], offsets[b + 1]) */
  const int64_t*
      query_offsets; /* [NULL: every token is a query] (B + 1) ascending: the queries of sample b are rows
                        [query_offsets[b], query_offsets[b + 1]) of q and o, its last tokens */
  const int32_t* contexts;   /* [NULL: 0] (B) context tokens at the beginning of each sample */
  const int32_t* targets;    /* [NULL: 0] (B) target tokens at the end of each sample */
  const float* sample_scale; /* [NULL: 1] (B) factors of `scale` */
  int32_t window_left;       /* [-1] a history token sees this many tokens before it; -1: all */
  int32_t window_right;      /* [0]  and this many after it; 0: causal, -1: all */
  int32_t target_group;      /* [1] targets that see each other, causally */
  float alpha;               /* [1] usually 1 / sqrt(D) */
  float scale;               /* [1] usually 1 / N */
  int32_t deterministic;     /* [0] 1: the backward pass gives the same bits every time */
  int32_t bias_tables;       /* [1] 1: tables of all heads; or H */
  int64_t positions;         /* [0] */
  int64_t buckets;           /* [0] thresholds, at most 65535 */
  /* In device memory. */
  const float* position_table; /* [NULL: no such term] (bias_tables, 2 positions - 1) */
  const float* time_table;     /* [NULL: no such term] (bias_tables, buckets + 1) */
  const int64_t* thresholds;   /* [NULL] (buckets) ascending */
  const int64_t* query_time;   /* [NULL] of the rows of q */
  const int64_t* key_time;     /* [NULL] of the rows of k */
  /* [NULL: not wanted] The backward pass adds the gradients of the tables to these, with the same bits every
   * time. */
  float* d_position_table;
  float* d_time_table;
} hstu_attention_problem;

/* All functions below but hstu_attention_error return 0, or 1 with a message in hstu_attention_error(). What
 * a description alone shows to be wrong is refused before any device is used. `stream` is a cudaStream_t or
 * CUstream. */
HSTU_API void hstu_attention_problem_init(hstu_attention_problem* problem);

/* The message of the last failure in this thread, or "". It stays valid until the next failure in this
 * thread. */
HSTU_API const char* hstu_attention_error(void);

/* Bytes of scratch memory on the device that each pass needs; they need no initial value. Both passes may use
 * the same memory one after the other in a stream. The bytes for a batch are enough for every batch of fewer
 * samples and tokens with the same kernels, heads and head size. */
HSTU_API int hstu_attention_workspace(const hstu_attention_problem* problem, int64_t* forward_bytes,
                                      int64_t* backward_bytes);

/* One line that names the kernels for the current device and the reason, cut to `size` bytes with its final
 * 0. */
HSTU_API int hstu_attention_explain(const hstu_attention_problem* problem, char* text, size_t size);

/* For finding mistakes: copies the arrays of the problem to the host, waits for the stream, and refuses
 * offsets that are negative, decrease or exceed the rows, samples longer than `longest`, more queries than
 * tokens, contexts and targets that are negative or more than the sample has, factors that are not finite,
 * and pointers to host memory. The other functions do not look at arrays: with invalid ones the result is
 * undefined. */
HSTU_API int hstu_attention_check(const hstu_attention_problem* problem, void* stream);

/* o: rows as q. Rows of no sample are not touched. `workspace`: at least the bytes that
 * hstu_attention_workspace returns, aligned to 256 bytes; it may be NULL if these are 0. */
HSTU_API int hstu_attention_forward(const hstu_attention_problem* problem, const hstu_rows* o,
                                    void* workspace, int64_t workspace_bytes, void* stream);

/* Gradients of q, k and v from d_o, the gradient of o. They are overwritten. d_o and dq: rows as q; dk as k;
 * dv as v. */
HSTU_API int hstu_attention_backward(const hstu_attention_problem* problem, const hstu_rows* d_o,
                                     const hstu_rows* dq, const hstu_rows* dk, const hstu_rows* dv,
                                     void* workspace, int64_t workspace_bytes, void* stream);

#ifdef __cplusplus
}
#endif
