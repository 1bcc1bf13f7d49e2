#include "base/counted.h"

#include "base/text.h"

namespace stoker {

std::string counted(std::int64_t number, std::string_view what) {
  std::string text = with_commas(number);
  text += ' ';
  text += what;
  // "batch", "loss", "box", "pass" take "es"; "reply" loses its end.
  const auto ends = [&](std::string_view with) { return what.ends_with(with); };
  const bool consonant_y = ends("y") && !ends("ay") && !ends("ey") && !ends("oy") && !ends("uy");
  if (number == 1) return text;
  if (consonant_y) return text.replace(text.size() - 1, 1, "ies");
  return text + (ends("s") || ends("x") || ends("ch") || ends("sh") ? "es" : "s");
}

}  // namespace stoker
