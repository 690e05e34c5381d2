/* The interface between hstu and libhstu_mpi.so, the only part that is built with MPI: hstu itself starts on
   machines without it. In C, because the two are linked apart. */
#pragma once

#include <stddef.h>

enum { HSTU_MPI_INTERFACE = 1 }; /* grows when HstuMpiCalls changes */

typedef struct HstuMpiCalls {
  int interface;       /* HSTU_MPI_INTERFACE */
  int rank, ranks;     /* of MPI_COMM_WORLD */
  int on_this_machine; /* ranks that share its memory */
  /* Begin a message; the memory must remain until done() says so. */
  void (*send)(int to, const void* data, size_t bytes);
  void (*receive)(int from, void* data, size_t bytes);
  /* Moves messages on. Returns how many bytes' worth of them have ended since the last call. */
  size_t (*progress)(void);
  /* The number of messages under way; ranks (that many, or null): their other sides. */
  size_t (*pending)(int* ranks);
  /* MPI_Finalize; nothing may be called after it. */
  void (*finish)(void);
} HstuMpiCalls;

/* Calls MPI_Init. The only symbol that hstu looks up. */
#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) const HstuMpiCalls*
    hstu_mpi_start(void);
