#include "hstu/predict/user_reader.h"

namespace hstu {

UserReader::UserReader(const Path& file, const ColumnNames& names, const Dataset& dataset, bool since_1970)
    : rows_(ByteSource(file, word_of(kTimeSteps, names.time_step))),
      user_(rows_.column(names.user)),
      user_texts_(dataset.manifest().hashed.contains("user")) {
  if (rows_.has_column(names.time)) time_ = TimeColumn{rows_.column(names.time), names.time_step, since_1970};
  if (rows_.has_column(names.request)) request_ = rows_.column(names.request);
}

bool UserReader::next(UserRequest& request) {
  if (!rows_.next()) return false;
  request.id = request_ ? std::string(rows_.field(*request_)) : std::to_string(rows_.rows());
  request.user = read_id(rows_, user_, user_texts_);
  request.user_text = rows_.field(user_);
  request.time = time_ ? std::optional(seconds_of(rows_, *time_)) : std::nullopt;
  return true;
}

}  // namespace hstu
