// Whether a sanitizer watches: programs are then slower and map memory of their own. g++ defines words for
// it, clang has features.
#pragma once

#if defined(__has_feature)
#define HSTU_HAS_FEATURE(feature) __has_feature(feature)
#else
#define HSTU_HAS_FEATURE(feature) 0
#endif

namespace hstu {

#if defined(__SANITIZE_THREAD__) || HSTU_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || HSTU_HAS_FEATURE(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitized;
#endif

}  // namespace hstu
