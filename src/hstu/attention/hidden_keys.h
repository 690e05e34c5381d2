// Keys that begin a period of tokens and are hidden from all others (AttentionMask::hidden_period).
#pragma once

#include <cstdint>

#include "hstu/base/host_device.h"

namespace hstu {

struct HiddenKeys {
  std::int32_t period = 0, phase = 0;  // 0: no key is hidden

  // Whether token `query` does not see token `key` although the mask has it; `contexts`: the sample's.
  HSTU_HOST_DEVICE bool hide(std::int32_t contexts, std::int32_t query, std::int32_t key) const {
    const std::int32_t n = key - contexts;
    if (period == 0 || n < 0 || n % period != phase) return false;
    return query < contexts || period_of(query - contexts) != period_of(n);
  }

 private:
  // Of a token behind the contexts; those before the first hidden key have a period of their own.
  HSTU_HOST_DEVICE std::int32_t period_of(std::int32_t n) const { return (n - phase + period) / period; }
};

}  // namespace hstu
