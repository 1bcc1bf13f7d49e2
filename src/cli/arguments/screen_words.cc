#include "cli/arguments/screen_words.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cli/outside/live_screen.h"
#include "cli/outside/output.h"
#include "report/text/screen.h"
#include "scenario/settings/settings.h"

namespace stoker::cli {
namespace {

/// Below this nothing is laid out for.
constexpr std::size_t kNarrowest = 40;

Result<Colour> parse_colour(std::string_view when) {
  if (when == "auto") return Colour::kAuto;
  if (when == "always") return Colour::kAlways;
  if (when == "never") return Colour::kNever;
  return fail(ErrorCode::kUsage, "takes auto, always or never, not \"" + std::string(when) + "\"",
              "--color");
}

/// https://no-color.org: any text but an empty one.
bool colour_is_unwanted() {
  const char* const said = std::getenv("NO_COLOR");
  return said != nullptr && *said != '\0';
}

}  // namespace

Result<ScreenWords> take_screen_words(std::string_view verb,
                                      const std::vector<std::string>& words) {
  ScreenWords out;
  const bool own_quiet = find_setting(verb, "quiet") != nullptr;
  const auto end = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != words.end(); ++word) {
    const bool ours = word < end;
    if (ours && (*word == "--color" || *word == "--colour")) {
      if (std::next(word) >= end)
        return fail(ErrorCode::kUsage, "takes auto, always or never", "--color");
      auto colour = TRY(parse_colour(*++word));
      out.colour = colour;
    } else if (ours && (word->starts_with("--color=") || word->starts_with("--colour="))) {
      auto colour = TRY(parse_colour(word->substr(word->find('=') + 1)));
      out.colour = colour;
    } else if (ours && !own_quiet && (*word == "-q" || *word == "--quiet")) {
      out.quiet = true;
    } else {
      out.words.push_back(*word);
    }
  }
  return out;
}

void prepare_screen(const ScreenWords& wanted) {
  const bool terminal = is_terminal(stdout);
  const std::size_t columns =
      terminal ? std::max<std::size_t>(terminal_size(stdout).columns, kNarrowest) : 0;
  layout::set_screen({columns, !wanted.quiet});
  const bool colour = wanted.colour == Colour::kAlways ||
                      (wanted.colour == Colour::kAuto && terminal && !colour_is_unwanted());
  set_output_style({colour, columns});
}

}  // namespace stoker::cli
