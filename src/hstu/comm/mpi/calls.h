/* The interface between hstu and libhstu_mpi.so, the only part that is built with MPI: hstu itself starts on
   machines without it. In C, because the two are linked apart. */
#pragma once

#include <stddef.h>

enum { HSTU_MPI_INTERFACE = 2 }; /* grows when HstuMpiCalls changes */

typedef struct HstuMpiCalls {
  int interface;       /* HSTU_MPI_INTERFACE */
  int rank, ranks;     /* of MPI_COMM_WORLD */
  int on_this_machine; /* ranks that share its memory */
  /* Any thread may call the next four. Messages of different channels, from 0, do not meet. */
  /* Begin a message; the memory must remain until it is no longer pending. */
  void (*send)(int channel, int to, const void* data, size_t bytes);
  void (*receive)(int channel, int from, void* data, size_t bytes);
  /* Moves messages on. Returns how many bytes' worth of the channel's have ended since the last call. */
  size_t (*progress)(int channel);
  /* The number of the channel's messages under way; ranks (that many, or null): their other sides. */
  size_t (*pending)(int channel, int* ranks);
  /* MPI_Finalize; nothing may be called after it. */
  void (*finish)(void);
} HstuMpiCalls;

/* Calls MPI_Init. The only symbol that hstu looks up. */
#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) const HstuMpiCalls*
    hstu_mpi_start(void);
