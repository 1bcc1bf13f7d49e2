#include "json/json_document.h"

#include <nlohmann/json.hpp>

namespace stoker {

Result<nlohmann::ordered_json> json_document(std::string_view text, const std::string& where,
                                             const DocumentKind& kind) {
  using Json = nlohmann::ordered_json;
  bool too_deep = false;
  const Json::parser_callback_t limit = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kind.max_depth;
    return !too_deep;
  };
  Json root = Json::parse(text, limit, /*allow_exceptions=*/false);
  if (too_deep) {
    return fail(ErrorCode::kBadInput, "is nested too deeply for " + std::string(kind.name), where);
  }
  if (root.is_discarded()) {
    return fail(ErrorCode::kBadInput,
                "is cut short or damaged (not valid JSON); " + std::string(kind.cure), where);
  }
  return root;
}

}  // namespace stoker
