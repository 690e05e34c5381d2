// MovieLens' text files as typed columns.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "hstu/columns/column_source.h"

namespace hstu {

// Whether the file's name is one of MovieLens' own:
//   u.data, ratings.dat, ratings.csv   columns user, item, rating (a real number), timestamp (seconds)
//                                      ratings.csv by the names in its header, userId, movieId, rating and
//                                      timestamp, in any order; without a header in this one
//   u.item, movies.dat, movies.csv     columns item, year (of release, from the title; null if it has none)
bool is_movielens_file(const Path& file);
// One of the first three.
bool is_movielens_ratings(const Path& file);

// Throws UsageError for an unknown column; while reading, Error naming file and line of a malformed line.
std::unique_ptr<ColumnSource> open_movielens(const Path& file, std::span<const std::string> columns,
                                             const ReadOptions& options);

}  // namespace hstu
