/* Jagged HSTU attention on NVIDIA GPUs, for any program: pointers, strides and a CUDA stream in, nothing
 * else.
 *
 *   O_i = scale * sum over the keys j that query i sees of silu(alpha q_i . k_j) * v_j     (per sample and
 * head; no softmax)
 *
 * The shared library needs the NVIDIA driver and no other library of CUDA. No function allocates device
 * memory, synchronises or changes the current device, so that calls can be captured in a CUDA graph.
 * Functions may be called from several threads at once. docs/attention.md says more of masks and of which
 * kernels run where. */
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

/* Rows of (T, H, D) in device memory: element (t, head, d) lies at data[t * row_stride + head * head_stride +
 * d]. Strides count elements, so that slices of one wider row are fine. The kernels for tensor cores want
 * `data` aligned to 16 bytes and strides in multiples of 8. */
typedef struct {
  void* data;
  int64_t row_stride;
  int64_t head_stride;
} hstu_rows;

/* Begin with hstu_attention_problem_init, which writes the defaults given in brackets. */
typedef struct {
  size_t size; /* [sizeof(hstu_attention_problem)] says which version of this header the caller was compiled
                  with */
  hstu_type type;   /* [HSTU_BF16] of q, k, v, o and their gradients; sums are fp32 */
  int64_t samples;  /* [0] B */
  int64_t tokens;   /* [0] T: rows in all, at least offsets[B] */
  int64_t heads;    /* [0] H */
  int64_t head_dim; /* [0] D, of q, k and v alike: 1 to 256 */
  int64_t longest;  /* [0] a bound of the tokens of a sample; 0: T */
  hstu_rows q, k, v;
  const int64_t* offsets;    /* (B + 1) on the device: sample b is rows [offsets[b], offsets[b + 1]) */
  const int32_t* contexts;   /* [NULL] (B) on the device: context tokens at the beginning of each sample */
  const int32_t* targets;    /* [NULL] (B) on the device: target tokens at the end of each sample */
  const float* sample_scale; /* [NULL] (B) on the device: multiplies `scale` */
  int32_t window_left;       /* [-1] a history token sees this many before it; -1: all */
  int32_t window_right;      /* [0]  and this many after it; 0: causal, -1: all */
  int32_t target_group;      /* [1] targets that see each other, causally */
  float alpha;               /* [1] usually 1 / sqrt(D) */
  float scale;               /* [1] usually 1 / N */
  int32_t deterministic;     /* [0] 1: the backward pass gives the same bits every time */
} hstu_attention_problem;

/* All functions below but the first return 0, or 1 with a message in hstu_attention_error(). `stream` is a
 * cudaStream_t or CUstream. */
HSTU_API void hstu_attention_problem_init(hstu_attention_problem* problem);

/* The message of the last failure in this thread; "" when there was none. It stays valid until the next
 * failure. */
HSTU_API const char* hstu_attention_error(void);

/* Bytes of scratch memory on the device that each pass needs, aligned to 256; they need no initial value.
 * Forward and backward pass may share it when they run one after the other in a stream. What a batch needs is
 * enough for any of fewer samples and tokens that takes the same kernels, with the same heads and head size.
 */
HSTU_API int hstu_attention_workspace(const hstu_attention_problem* problem, int64_t* forward_bytes,
                                      int64_t* backward_bytes);

/* One line that says which kernels would run on the current device, and why; cut to `size` bytes with its
 * final 0. */
HSTU_API int hstu_attention_explain(const hstu_attention_problem* problem, char* text, size_t size);

/* o: rows as q. Rows of no sample are not touched. */
HSTU_API int hstu_attention_forward(const hstu_attention_problem* problem, const hstu_rows* o,
                                    void* workspace, void* stream);

/* Gradients of q, k and v from d_o, the gradient of o. They are overwritten. */
HSTU_API int hstu_attention_backward(const hstu_attention_problem* problem, const hstu_rows* d_o,
                                     const hstu_rows* dq, const hstu_rows* dk, const hstu_rows* dv,
                                     void* workspace, void* stream);

#ifdef __cplusplus
}
#endif
