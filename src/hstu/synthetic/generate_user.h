// Generates the events of one user.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/synthetic/generate_catalogue.h"
#include "hstu/synthetic/generate_options.h"

namespace hstu {

// Events of one user and one timestamp are in this order, as in Yambda. The codes index kEventTypes.
enum class EventType : std::uint8_t { kListen, kDislike, kLiked, kUndislike, kUnlike };
inline constexpr Choice<EventType> kEventTypes[] = {{"listen", EventType::kListen},
                                                    {"dislike", EventType::kDislike},
                                                    {"like", EventType::kLiked},
                                                    {"undislike", EventType::kUndislike},
                                                    {"unlike", EventType::kUnlike}};

struct GeneratedEvent {
  std::uint32_t timestamp;  // seconds, a multiple of 5
  std::uint32_t item;       // index into Catalogue::items()
  std::uint16_t played_ratio_pct;
  EventType type;
  std::uint8_t is_organic;
  float probability;  // of listen_plus, used in the random draw; listens only

  bool is_listen() const { return type == EventType::kListen; }
  bool is_listen_plus() const { return is_listen() && played_ratio_pct >= 50; }
};

// Events of user `uid` within [0, days), ordered by (timestamp, type), a pure function of (options, uid); no
// two listens share timestamp and item. `events` is replaced.
void generate_user(const GenerateOptions& options, const Catalogue& catalogue, std::uint32_t uid,
                   std::vector<GeneratedEvent>& events);

}  // namespace hstu
