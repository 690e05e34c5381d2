// Codes of items on disk. docs/semantic-ids.md describes the forms.
#pragma once

#include <string>

#include "hstu/base/files.h"
#include "hstu/base/json.h"
#include "hstu/codes/item_codes.h"

namespace hstu {

// Reads
//   a folder that write_codes() wrote, with what append_codes() has added;
//   NAME.json: {"0": ["<a_12>", "<b_3>"], ...}, an index of the form of LETTER, or numbers in place of texts;
//   NAME.npy or NAME.safetensors with one tensor: integers (L, V), column i of the item with the id i.
// Where a file does not say how many codes a level has, it is the largest number of any level, plus 1.
// `first_item` is added to the ids of the last two forms, which often count from 0. Throws Error naming file,
// item and level of what is wrong, UsageError for a path that is none of these.
ItemCodes read_codes(const Path& path, std::int64_t first_item = 0);

// Of ids, levels and codes: equal for equal contents, in whatever form they are on disk.
std::string codes_checksum(const ItemCodes& codes);

// Writes manifest.json, ids.i64.npy and codes.i32.npy to a folder that exists. `method`: how the codes were
// made, for people and for those that append.
void write_codes(const Path& folder, const ItemCodes& codes, const Json& method);

// Adds the codes of other items to a folder of codes, all of them or none; what is there stays as it is.
void append_codes(const Path& folder, const ItemCodes& codes, const Json& method);
// How the codes of a folder were made.
Json codes_method(const Path& folder);

}  // namespace hstu
