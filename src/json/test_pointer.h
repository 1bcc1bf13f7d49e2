#pragma once

#include <cstdlib>
#include <string>

#include "json/value.h"

/// Tests damage documents at places like "/runs/0/batch".
namespace stoker::json {

/// The value there, added where a member is missing.
[[nodiscard]] inline Value& at_pointer(Value& root, std::string_view pointer) {
  Value* at = &root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view name = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(name.size());
    at = at->is_array() ? &(*at)[std::atoi(std::string(name).c_str())] : &(*at)[name];
  }
  return *at;
}

inline void erase_pointer(Value& root, std::string_view pointer) {
  const std::size_t slash = pointer.rfind('/');
  at_pointer(root, pointer.substr(0, slash)).erase(pointer.substr(slash + 1));
}

}  // namespace stoker::json
