// The part of NCCL's C interface that hstu uses, found in libnccl.so.2 at run time: a program without it
// trains on one rank, and needs no NCCL to be built.
#pragma once

#include <array>
#include <cstddef>

struct CUstream_st;

namespace hstu::nccl {

struct Comm;  // ncclComm
struct UniqueId {
  std::array<char, 128> bytes{};
};
using Result = int;                    // ncclResult_t; 0: success
inline constexpr int kBytes = 0;       // ncclInt8 of ncclDataType_t
inline constexpr int kOldest = 20700;  // ncclSend and ncclRecv came with 2.7

struct Calls {
  Result (*get_version)(int* version);
  Result (*get_unique_id)(UniqueId* id);
  Result (*init_rank)(Comm** comm, int ranks, UniqueId id, int rank);
  Result (*destroy)(Comm* comm);
  Result (*abort)(Comm* comm);
  Result (*send)(const void* data, std::size_t count, int type, int to, Comm* comm, CUstream_st* stream);
  Result (*receive)(void* data, std::size_t count, int type, int from, Comm* comm, CUstream_st* stream);
  Result (*group_start)();
  Result (*group_end)();
  const char* (*error_string)(Result result);
  int version = 0;  // 22703 is 2.27.3
};

// Loaded by the first call. UsageError saying what is missing and where it was looked for.
const Calls& calls();

}  // namespace hstu::nccl
