// What hstu prepare says, and hstu follow reads.
#pragma once

namespace hstu {

// In the message of an append that adds nothing because the dataset has all of its events.
inline constexpr const char* kAppendedBefore = "the log was appended before";

}  // namespace hstu
