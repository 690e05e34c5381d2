#include "hstu/dataset/counted_times.h"

#include "hstu/base/calendar.h"

namespace hstu {

bool counts_from_1970(const Manifest& manifest) {
  return (manifest.counts.events == 0 && manifest.time == TimeRange()) ||
         is_plausible_year(calendar_year(manifest.time.max));
}

}  // namespace hstu
