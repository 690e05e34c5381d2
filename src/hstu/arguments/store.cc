#include "hstu/arguments/store.h"

#include <cstdint>

#include "hstu/arguments/size.h"

namespace hstu {

void add_store_options(CLI::App& command, StoreOptions& options) {
  command
      .add_option("--s3-credentials", options.credentials,
                  "file of keys, as ~/.aws/credentials; default: requests are not signed")
      ->check(CLI::ExistingFile);
  command.add_option("--s3-profile", options.profile, "section of that file")->capture_default_str();
  command.add_option("--s3-region", options.region, "of the bucket")->capture_default_str();
  command.add_option("--s3-endpoint", options.endpoint,
                     "http://HOST:PORT of a store that is not AWS; default: that of the region");
}

void add_store_part(CLI::App& command, StoreOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{5} << 30;  // that a store takes at once
  command
      .add_option("--s3-part", options.part_bytes,
                  "longer files are sent in parts of this size, of which AWS takes no smaller ones than 5MiB")
      ->transform(size_between(1, kMost))
      ->default_str("64MiB");
}

}  // namespace hstu
