// Reads an event file back, knowing only the published formats: what a test compares with.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/report/event_record.h"

namespace hstu {

struct ReadEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string file_version;
  std::map<std::string, float> scalars;
};

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  }
  template <typename T>
  T raw() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view bytes() { return take(varint()); }

 private:
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) throw std::runtime_error("the message is cut short");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest_;
};

inline void read_summary(std::string_view summary, ReadEvent& event) {
  for (ProtobufReader values(summary); !values.done();) {
    if (values.varint() != (1 << 3 | 2)) throw std::runtime_error("expected Summary.value");
    std::string tag;
    for (ProtobufReader value(values.bytes()); !value.done();) {
      const std::uint64_t key = value.varint();
      if (key == (1 << 3 | 2)) tag = value.bytes();
      if (key == (2 << 3 | 5)) event.scalars[tag] = value.raw<float>();
    }
  }
}

inline ReadEvent read_event(std::string_view bytes) {
  ReadEvent event;
  for (ProtobufReader reader(bytes); !reader.done();) {
    switch (reader.varint()) {
      case 1 << 3 | 1:
        event.wall_time = reader.raw<double>();
        break;
      case 2 << 3 | 0:
        event.step = static_cast<std::int64_t>(reader.varint());
        break;
      case 3 << 3 | 2:
        event.file_version = reader.bytes();
        break;
      case 5 << 3 | 2:
        read_summary(reader.bytes(), event);
        break;
      default:
        throw std::runtime_error("a field that this reader does not know");
    }
  }
  return event;
}

// Checks both checksums of every record.
inline std::vector<ReadEvent> read_event_file(std::string_view bytes) {
  const auto unmasked = [](std::uint32_t masked) {
    const std::uint32_t rotated = masked - 0xA282EAD8u;
    return rotated << 15 | rotated >> 17;
  };
  std::vector<ReadEvent> events;
  while (!bytes.empty()) {
    std::uint64_t size = 0;
    std::uint32_t size_check = 0, check = 0;
    std::memcpy(&size, bytes.data(), 8);
    std::memcpy(&size_check, bytes.data() + 8, 4);
    const std::string_view event = bytes.substr(12, size);
    std::memcpy(&check, bytes.data() + 12 + size, 4);
    if (unmasked(size_check) != crc32c(bytes.substr(0, 8)) || unmasked(check) != crc32c(event))
      throw std::runtime_error("a checksum differs");
    events.push_back(read_event(event));
    bytes.remove_prefix(16 + size);
  }
  return events;
}

}  // namespace hstu
