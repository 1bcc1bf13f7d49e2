#include "operators/operator_name.h"

#include <utility>

namespace stoker {

OperatorName::OperatorName(std::string text) : text_(std::move(text)), family_(&family_of(text_)) {
  const std::string_view function = function_of(text_);
  begin_ = static_cast<std::uint32_t>(function.data() - text_.data());
  function_ = static_cast<std::uint32_t>(function.size());
  backward_ = function.find("_backward") != std::string_view::npos;
}

}  // namespace stoker
