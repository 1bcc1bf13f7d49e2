#include "report/json/answer.h"

#include "base/text.h"

namespace stoker {

json::Value answer(std::string_view schema, std::string_view tool_version) {
  return {{"schema", schema}, {"stoker", tool_version}};
}

std::string answer_text(const json::Value& answer) { return escaped(answer.dump(2)) + "\n"; }

}  // namespace stoker
