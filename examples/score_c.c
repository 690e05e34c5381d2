/* Scores two items for the user of a few events, in C: example_score_c EXPORT. */
#include <stdio.h>
#include <stdlib.h>

#include "hstu/score.h"

static int failed(void) {
  fprintf(stderr, "score_c: %s\n", hstu_score_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s EXPORT\n", argv[0]);
    return 2;
  }
  if (hstu_score_version() != HSTU_SCORE_VERSION) {
    fprintf(stderr, "score_c: the library has version %d, the header %d\n", hstu_score_version(),
            HSTU_SCORE_VERSION);
    return 1;
  }
  hstu_score_options options;
  hstu_score_options_init(&options);
  options.model = argv[1];
  options.cache_bytes = 64 << 20;
  hstu_scorer* scorer = NULL;
  if (hstu_score_open(&options, &scorer) != HSTU_SCORE_OK) return failed();

  /* The user's events: what, when (seconds), and which actions (bits of the dataset's manifest). */
  const int64_t event_items[] = {3, 5, 8}, event_times[] = {1000, 2000, 3000};
  const uint8_t event_actions[] = {1, 3, 1};
  const int64_t items[] = {2, 7};
  const int64_t columns = hstu_score_columns(scorer);
  int64_t* const contexts = calloc((size_t)columns + 1, sizeof *contexts);

  hstu_score_request request;
  hstu_score_request_init(&request);
  request.user = 1;
  request.time = 4000;
  request.event_items = event_items;
  request.event_times = event_times;
  request.event_actions = event_actions;
  request.events = 3;
  request.contexts = contexts; /* a model that reads a context column wants its value here */
  request.items = items;
  request.item_count = 2;

  const int64_t tasks = hstu_score_tasks(scorer);
  float* const scores = calloc((size_t)(2 * tasks) + 1, sizeof *scores);
  int status = 0;
  if (hstu_score(scorer, &request, 1, scores) != HSTU_SCORE_OK) {
    status = failed();
  } else {
    for (int i = 0; i < 2; ++i) {
      printf("item %lld:", (long long)items[i]);
      for (int64_t k = 0; k < tasks; ++k)
        printf(" %s %.9g", hstu_score_task(scorer, k), (double)scores[i * tasks + k]);
      printf("\n");
    }
  }
  free(scores);
  free(contexts);
  hstu_score_close(scorer);
  return status;
}
