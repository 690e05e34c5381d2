/* Scores of hstu's models for programs in any language: opens an export (or the folder of a run) and answers
 * requests from memory. The answers are those of `hstu predict`, to the last bit on the same device.
 *
 * All functions may be called from several threads at once. A scorer has a thread of its own that computes;
 * requests that arrive while it computes are answered together by the next pass. A process that was forked
 * has no such thread: with a scorer that its parent opened, functions that answer fail, and hstu_score_close
 * does nothing. docs/serving.md */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HSTU_SCORE_API __attribute__((visibility("default")))
#else
#define HSTU_SCORE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every change of this header that an older program would not survive. */
#define HSTU_SCORE_VERSION 2

/* What functions return. hstu_score_error() has the text. */
typedef enum {
  HSTU_SCORE_OK = 0,
  HSTU_SCORE_BAD_REQUEST = 1, /* an argument or a request is wrong */
  HSTU_SCORE_BAD_MODEL = 2,   /* the model cannot be opened, or not with these options */
  HSTU_SCORE_FAILED = 3       /* memory, numbers that are not finite, a defect */
} hstu_score_status;

typedef struct hstu_scorer hstu_scorer;

/* Call hstu_score_options_init first: it writes the defaults, which the comments give in brackets. */
typedef struct {
  size_t size;            /* [sizeof(hstu_score_options)] which header the caller uses */
  const char* model;      /* [NULL] folder of an export or of a run; needed */
  const char* checkpoint; /* [NULL: the newest] of a run: a step or "best" */
  const char* data;     /* [NULL: the run's] a dataset with users' histories; an export has none of its own */
  const char* device;   /* [NULL: the run's] "host", "cuda", "cuda:N" or "auto" */
  int64_t cache_bytes;  /* [0: none] of keys and values of histories that stay between requests */
  int64_t cache_behind; /* [0: none] on a GPU: of host memory for histories that leave the GPU's; needs
                           cache_bytes */
  int64_t batch_size;   /* [0: as the run's evaluations] samples of a forward pass */
  int64_t most_requests; /* [256] that are answered together */
  int32_t threads;       /* [0: all cores] that compute, on a processor; at most 4096 */
} hstu_score_options;

/* Call hstu_score_request_init first. Ids are those of the dataset: of ids that are texts, their hashes. */
typedef struct {
  size_t size;  /* [sizeof(hstu_score_request)] */
  int64_t user; /* [0] its id */
  int64_t time; /* [INT64_MIN: after the user's last event, for vectors and top of retrieval alone] seconds;
                   of a dataset whose times count from 1970, a number of another unit is refused */
  /* [NULL] The user's events, in any order; those at `time` or later do not count. NULL: those that
   * options.data has of the user. */
  const int64_t* event_items;
  const int64_t* event_times;   /* seconds */
  const uint8_t* event_actions; /* sums of the action bits of the dataset's manifest */
  /* [NULL] (columns, events): context columns of the events in the manifest's order, one after the other;
   * needed by models with an action_column. Of a column of texts: hstu_score_code. */
  const int64_t* event_contexts;
  int64_t events; /* [0]; -1: there are no arrays, and the user's events are those of options.data */
  /* [NULL] (columns) values of the dataset's context columns, in the manifest's order; needed where
   * contextual features read one. Of a column of texts: hstu_score_code. */
  const int64_t* contexts;
  const int64_t* items; /* [NULL] the candidates */
  int64_t item_count;   /* [0] */
} hstu_score_request;

HSTU_SCORE_API int32_t hstu_score_version(void); /* HSTU_SCORE_VERSION of the library */
/* The text of the last failure in this thread, or "". Valid until the next failure in this thread. */
HSTU_SCORE_API const char* hstu_score_error(void);

HSTU_SCORE_API void hstu_score_options_init(hstu_score_options* options);
HSTU_SCORE_API void hstu_score_request_init(hstu_score_request* request);

/* Opens a model. *scorer is NULL after a failure. */
HSTU_SCORE_API hstu_score_status hstu_score_open(const hstu_score_options* options, hstu_scorer** scorer);
/* Waits for requests that are being answered. NULL: does nothing. */
HSTU_SCORE_API void hstu_score_close(hstu_scorer* scorer);

/* What is open; of NULL: 0 and NULL. Texts are valid until hstu_score_close. */
HSTU_SCORE_API int64_t hstu_score_tasks(const hstu_scorer* scorer); /* scores of an item; 0: retrieval */
HSTU_SCORE_API const char* hstu_score_task(const hstu_scorer* scorer, int64_t task); /* NULL: none */
HSTU_SCORE_API int64_t hstu_score_width(const hstu_scorer* scorer); /* of vectors; 0: a model that ranks */
HSTU_SCORE_API int64_t hstu_score_catalogue(const hstu_scorer* scorer); /* items that top finds at most */
HSTU_SCORE_API int64_t hstu_score_columns(const hstu_scorer* scorer);   /* context columns of the dataset */
HSTU_SCORE_API const char* hstu_score_column(const hstu_scorer* scorer, int64_t column); /* NULL: none */
/* The code of a text of a context column, which requests have in its place; 0: the dataset does not have the
 * text. -1: a failure; the column may have numbers, which requests have as they are. */
HSTU_SCORE_API int64_t hstu_score_code(const hstu_scorer* scorer, int64_t column, const char* text);
HSTU_SCORE_API const char* hstu_score_model(const hstu_scorer* scorer); /* step and hash of the weights */

/* Of all requests that were answered: candidates, and events of requests, whose items the model has no row
 * for. They count as items that training has not seen; many of them mean wrong ids. */
HSTU_SCORE_API int64_t hstu_score_untrained_items(const hstu_scorer* scorer);

/* Of a model that ranks: probabilities (items, tasks) of each request, one request after the other. */
HSTU_SCORE_API hstu_score_status hstu_score(hstu_scorer* scorer, const hstu_score_request* requests,
                                            int64_t count, float* scores);

/* The k items of each request with the highest scores, in order: of its candidates, of all items that
 * training has seen (a model that ranks, no candidates), or of the whole catalogue (retrieval). k: at least
 * 1; all items where there are fewer. items (count, k) and scores (count, k) of task 0; found (count): how
 * many there are. exclude_seen: 0; 1: without the items of the user's events; HSTU_SCORE_SEEN_BY(a sum of
 * action bits): of those with one of these actions.
 */
#define HSTU_SCORE_SEEN_BY(actions) ((actions) << 8)
HSTU_SCORE_API hstu_score_status hstu_score_top(hstu_scorer* scorer, const hstu_score_request* requests,
                                                int64_t count, int64_t k, int32_t exclude_seen,
                                                int64_t* items, float* scores, int64_t* found);

/* Of kind retrieval: vectors (count, width) of users; found (count): 1, or 0 for a user without a history,
 * whose vector is zeros. */
HSTU_SCORE_API hstu_score_status hstu_score_vectors(hstu_scorer* scorer, const hstu_score_request* requests,
                                                    int64_t count, float* vectors, int64_t* found);

#ifdef __cplusplus
}
#endif
