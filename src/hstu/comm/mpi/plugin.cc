// libhstu_mpi.so: messages through MPI. Errors of MPI end all ranks with MPI's own message.
#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
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

// One thread at a time may be in MPI (MPI_THREAD_SERIALIZED).
std::mutex mutex;

// Of a channel, which is a tag to MPI.
std::vector<Message>& messages(int channel) {
  static std::map<int, std::vector<Message>> all;
  return all[channel];
}

template <typename Byte, typename Begin>
void begin(int channel, int rank, Byte* data, std::size_t bytes, const Begin& begin_chunk) {
  const std::scoped_lock lock(mutex);
  std::vector<Message>& begun = messages(channel);
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): MPI_Test below ends the requests
  for (std::size_t at = 0; at < bytes; at += kChunk) {
    const std::size_t chunk = std::min(kChunk, bytes - at);
    begun.push_back({MPI_REQUEST_NULL, rank, chunk});
    begin_chunk(data + at, static_cast<int>(chunk), &begun.back().request);
  }
}

void send(int channel, int to, const void* data, std::size_t bytes) {
  begin(channel, to, static_cast<const std::byte*>(data), bytes,
        [&](const std::byte* at, int count, MPI_Request* request) {
          MPI_Isend(at, count, MPI_BYTE, to, channel, MPI_COMM_WORLD, request);
        });
}

void receive(int channel, int from, void* data, std::size_t bytes) {
  begin(channel, from, static_cast<std::byte*>(data), bytes,
        [&](std::byte* at, int count, MPI_Request* request) {
          MPI_Irecv(at, count, MPI_BYTE, from, channel, MPI_COMM_WORLD, request);
        });
}

std::size_t progress(int channel) {
  const std::scoped_lock lock(mutex);
  std::size_t ended = 0;
  std::erase_if(messages(channel), [&](Message& message) {
    int done = 0;
    MPI_Test(&message.request, &done, MPI_STATUS_IGNORE);
    if (done != 0) ended += message.bytes;
    return done != 0;
  });
  return ended;
}

std::size_t pending(int channel, int* ranks) {
  const std::scoped_lock lock(mutex);
  const std::vector<Message>& begun = messages(channel);
  if (ranks != nullptr)
    std::transform(begun.begin(), begun.end(), ranks, [](const Message& m) { return m.rank; });
  return begun.size();
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
