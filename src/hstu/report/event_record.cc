#include "hstu/report/event_record.h"

#include <array>
#include <cstring>

namespace hstu {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}

// Protobuf's wire format: a key is field number * 8 + wire type.
enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

void append_key(std::string& to, int field, Wire wire) {
  append_varint(to, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

template <typename T>
void append_raw(std::string& to, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

void append_bytes(std::string& to, int field, std::string_view bytes) {
  append_key(to, field, Wire::kBytes);
  append_varint(to, bytes.size());
  to += bytes;
}

// Event.wall_time = 1
std::string event_at(double wall_time) {
  std::string event;
  append_key(event, 1, Wire::kFixed64);
  append_raw(event, wall_time);
  return event;
}

std::uint32_t masked(std::uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = ~0u;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::string version_event(double wall_time) {
  std::string event = event_at(wall_time);
  append_bytes(event, 3, "brain.Event:2");  // Event.file_version
  return event;
}

std::string scalars_event(double wall_time, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    append_bytes(value, 1, tag);           // Summary.Value.tag
    append_key(value, 2, Wire::kFixed32);  // Summary.Value.simple_value
    append_raw(value, static_cast<float>(number));
    append_bytes(summary, 1, value);  // Summary.value, repeated
  }
  std::string event = event_at(wall_time);
  append_key(event, 2, Wire::kVarint);  // Event.step
  append_varint(event, static_cast<std::uint64_t>(step));
  append_bytes(event, 5, summary);  // Event.summary
  return event;
}

std::string framed(std::string_view event) {
  std::string record;
  append_raw(record, static_cast<std::uint64_t>(event.size()));
  append_raw(record, masked(crc32c(record)));
  record += event;
  append_raw(record, masked(crc32c(event)));
  return record;
}

}  // namespace hstu
