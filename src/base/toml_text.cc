#include "base/toml_text.h"

#include <cstdio>

namespace stoker {

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04X", static_cast<unsigned>(byte));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string toml_size(Bytes bytes) {
  if (bytes.count() > 0 && bytes.count() % kGiB.count() == 0) {
    return toml_string(std::to_string(bytes.count() / kGiB.count()) + "GiB");
  }
  if (bytes.count() > 0 && bytes.count() % kMiB.count() == 0) {
    return toml_string(std::to_string(bytes.count() / kMiB.count()) + "MiB");
  }
  return std::to_string(bytes.count());
}

}  // namespace stoker
