#include "hstu/columns/raw_values.h"

#include "hstu/columns/raw_checks.h"
#include "hstu/columns/text_codes.h"

namespace hstu {

NamedIds append_ids(const RawBatch& batch, const RawColumn& column, const std::string& role,
                    IntegerColumn& to) {
  if (column.kind != RawColumn::Kind::kText) {
    to.append(integers_of(batch, column, role.c_str()));
    check_not_negative(batch, column, (role + "s").c_str());
    return {};
  }
  TextIds texts = text_ids_of(batch, column, role.c_str());
  to.append(texts.ids);
  return std::move(texts.names);
}

CodedTexts append_values(const RawBatch& batch, const RawColumn& column, const char* role,
                         IntegerColumn& to) {
  if (column.kind != RawColumn::Kind::kText) {
    to.append(integers_of(batch, column, role));
    return std::nullopt;
  }
  TextCodes texts = codes_of(column);
  to.append(texts.codes);
  return std::move(texts.texts);
}

}  // namespace hstu
