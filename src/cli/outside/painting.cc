#include "cli/outside/painting.h"

#include <algorithm>
#include <array>

namespace stoker::cli {
namespace {

constexpr std::string_view kGreen = "\x1b[1;32m", kYellow = "\x1b[1;33m", kRed = "\x1b[1;31m",
                           kBold = "\x1b[1m", kFaint = "\x1b[2m", kPlain = "\x1b[0m";

struct Mark {
  std::string_view word;
  std::string_view style;
  enum class Reach { kWord, kLine } reach;
};

/// Words that begin a line, blanks aside.
constexpr std::array<Mark, 19> kBegins{{{"FITS:", kGreen, Mark::Reach::kWord},
                                        {"RISKY", kYellow, Mark::Reach::kWord},
                                        {"DOES NOT FIT", kRed, Mark::Reach::kWord},
                                        {"BEST:", kGreen, Mark::Reach::kLine},
                                        {"BANDS HELD", kGreen, Mark::Reach::kWord},
                                        {"NOT JUDGED", kYellow, Mark::Reach::kWord},
                                        {"NOT TRAINED:", kYellow, Mark::Reach::kWord},
                                        {"NOTHING TO COMPARE", kYellow, Mark::Reach::kWord},
                                        {"Limited by", kBold, Mark::Reach::kLine},
                                        {"warning:", kYellow, Mark::Reach::kWord},
                                        {"- WARNING", kYellow, Mark::Reach::kWord},
                                        {"Cure:", kGreen, Mark::Reach::kWord},
                                        {"Take ", kGreen, Mark::Reach::kLine},
                                        {"Stopped:", kYellow, Mark::Reach::kWord},
                                        {"Note:", kFaint, Mark::Reach::kWord},
                                        {"Not seen:", kFaint, Mark::Reach::kWord},
                                        {"Rests on", kFaint, Mark::Reach::kWord},
                                        {"Assumed", kFaint, Mark::Reach::kWord},
                                        {"Excluded", kFaint, Mark::Reach::kWord}}};

std::string painted_line(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::string_view words = line.substr(begin);
  for (const Mark& mark : kBegins) {
    if (!words.starts_with(mark.word)) continue;
    const std::size_t end = mark.reach == Mark::Reach::kLine ? words.size() : mark.word.size();
    return std::string(line.substr(0, begin)) + std::string(mark.style) +
           std::string(words.substr(0, end)) + std::string(kPlain) + std::string(words.substr(end));
  }
  if (words.find("MISSED") != std::string_view::npos && !words.empty() && words[0] >= '0' &&
      words[0] <= '9')
    return std::string(kRed) + std::string(line) + std::string(kPlain);
  return std::string(line);
}

template <class Each>
std::string by_line(std::string_view text, const Each& each) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out += each(text.substr(0, end));
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

/// Where the words of a line begin: behind its blanks, and behind "Next  1. " or "  2. ".
std::size_t words_begin(std::string_view line) {
  constexpr std::size_t kLatest = 12;
  const std::size_t point = line.find(". ");
  if (point != std::string_view::npos && point > 0 && point < kLatest && line[point - 1] >= '0' &&
      line[point - 1] <= '9')
    return point;
  return std::min(line.find_first_not_of(' '), line.size());
}

/// A character of UTF-8 that goes on is none of its own.
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

}  // namespace

std::string painted(std::string_view text) { return by_line(text, painted_line); }

std::string wrapped(std::string_view text, std::size_t columns) {
  constexpr std::size_t kFurther = 2, kDeepest = 24;
  return by_line(text, [&](std::string_view line) {
    if (columns_of(line) <= columns) return std::string(line);
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const std::string further(std::min(words_begin(line), kDeepest) + kFurther, ' ');
    std::string out, now(line.substr(0, begin));
    bool fresh = true;
    for (std::size_t at = begin; at < line.size();) {
      std::size_t end = std::min(line.find(' ', at), line.size());
      const std::string_view word = line.substr(at, end - at);
      if (!fresh && columns_of(now) + 1 + columns_of(word) > columns) {
        out += now + "\n";
        now = further;
        fresh = true;
      }
      now += (fresh ? "" : " ") + std::string(word);
      fresh = false;
      at = end + 1;
    }
    return out + now;
  });
}

}  // namespace stoker::cli
