// Types of the columns of CSV files, guessed from their values.
#pragma once

#include "hstu/columns/column_source.h"

namespace hstu {

// The texts of the column as integers, numbers or times if all of them are; otherwise the column itself.
// Texts with a leading zero are no numbers. For guesses alone: a schema states the types of CSV files.
RawColumn typed(const RawBatch& batch, const RawColumn& column);

}  // namespace hstu
