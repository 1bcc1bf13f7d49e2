#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace stoker::cli {

/// Adds a phrase that several parts of an answer may bring.
inline void add_once(std::vector<std::string>& list, const std::string& phrase) {
  if (std::find(list.begin(), list.end(), phrase) == list.end()) list.push_back(phrase);
}

}  // namespace stoker::cli
