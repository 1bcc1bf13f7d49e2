#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "operators/family.h"

namespace stoker {

/// An operator's name with what the table says of it, found out once: when a step is read.
class OperatorName {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a name is given as text.
  OperatorName(std::string text);
  OperatorName(const char* text) : OperatorName(std::string(text)) {}
  // NOLINTEND(google-explicit-constructor)
  explicit OperatorName(std::string_view text) : OperatorName(std::string(text)) {}

  /// The name as the step file has it: "aten::add_.Tensor".
  [[nodiscard]] const std::string& text() const { return text_; }
  /// "add_"
  [[nodiscard]] std::string_view function() const {
    return std::string_view(text_).substr(begin_, function_);
  }
  [[nodiscard]] const OperatorFamily& family() const { return *family_; }
  [[nodiscard]] bool backward() const { return backward_; }

  friend bool operator==(const OperatorName& name, std::string_view text) {
    return name.text_ == text;
  }

 private:
  std::string text_;
  const OperatorFamily* family_;
  std::uint32_t begin_ = 0, function_ = 0;  ///< first character and length of the function
  bool backward_ = false;
};

}  // namespace stoker
