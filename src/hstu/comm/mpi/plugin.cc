// libhstu_mpi.so: messages through MPI. Errors of MPI end all ranks with MPI's own message.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <mpi.h>

#include "hstu/comm/mpi/calls.h"

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 30;  // MPI counts in 32 bits

struct Message {
  MPI_Request request;
  int rank;  // of the other side
  std::size_t bytes;
};

std::vector<Message>& messages() {
  static std::vector<Message> all;
  return all;
}

template <typename Byte, typename Begin>
void begin(int rank, Byte* data, std::size_t bytes, const Begin& begin_chunk) {
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): MPI_Test below ends the requests
  for (std::size_t at = 0; at < bytes; at += kChunk) {
    const std::size_t chunk = std::min(kChunk, bytes - at);
    messages().push_back({MPI_REQUEST_NULL, rank, chunk});
    begin_chunk(data + at, static_cast<int>(chunk), &messages().back().request);
  }
}

void send(int to, const void* data, std::size_t bytes) {
  begin(to, static_cast<const std::byte*>(data), bytes,
        [&](const std::byte* at, int count, MPI_Request* request) {
          MPI_Isend(at, count, MPI_BYTE, to, 0, MPI_COMM_WORLD, request);
        });
}

void receive(int from, void* data, std::size_t bytes) {
  begin(from, static_cast<std::byte*>(data), bytes, [&](std::byte* at, int count, MPI_Request* request) {
    MPI_Irecv(at, count, MPI_BYTE, from, 0, MPI_COMM_WORLD, request);
  });
}

std::size_t progress() {
  std::size_t ended = 0;
  std::erase_if(messages(), [&](Message& message) {
    int done = 0;
    MPI_Test(&message.request, &done, MPI_STATUS_IGNORE);
    if (done != 0) ended += message.bytes;
    return done != 0;
  });
  return ended;
}

std::size_t pending(int* ranks) {
  if (ranks != nullptr)
    std::transform(messages().begin(), messages().end(), ranks, [](const Message& m) { return m.rank; });
  return messages().size();
}

int of_world(int (*call)(MPI_Comm, int*), MPI_Comm comm) {
  int value = 0;
  call(comm, &value);
  return value;
}

}  // namespace

const HstuMpiCalls* hstu_mpi_start() {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  static const HstuMpiCalls calls{.interface = HSTU_MPI_INTERFACE,
                                  .rank = of_world(&MPI_Comm_rank, MPI_COMM_WORLD),
                                  .ranks = of_world(&MPI_Comm_size, MPI_COMM_WORLD),
                                  .on_this_machine = of_world(&MPI_Comm_size, machine),
                                  .send = &send,
                                  .receive = &receive,
                                  .progress = &progress,
                                  .pending = &pending,
                                  .finish = [] { MPI_Finalize(); }};
  MPI_Comm_free(&machine);
  return &calls;
}
