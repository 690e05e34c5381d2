// The token of a group: what its ranks know and no stranger does. It is never sent: who knows it proves so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hstu/base/files.h"

namespace hstu {

struct GroupToken {
  std::uint64_t low = 0, high = 0;
  bool operator==(const GroupToken&) const = default;
};

GroupToken random_token();  // of the system's random numbers
GroupToken derived_token(const GroupToken& token, std::string_view purpose);
// Of a text that somebody has given to all ranks. UsageError if it is short enough to be guessed.
GroupToken token_of_text(std::string_view text);

// SipHash-2-4 of the text under the token: without it nobody can tell the proof of another text. (Aumasson
// and Bernstein, "SipHash: a fast short-input PRF", 2012)
std::uint64_t proof_of(const GroupToken& token, std::string_view text);

// A file that this user alone may read, replaced as a whole. Error if it cannot be written.
void write_token(const Path& file, const GroupToken& token);
// None: it is not there, or is of somebody else than this user and the owner of its folder.
std::optional<GroupToken> read_token(const Path& file);

// A descriptor that a child may inherit and read the token from.
int token_descriptor(const GroupToken& token);
std::optional<GroupToken> token_of_descriptor(int descriptor);

}  // namespace hstu
