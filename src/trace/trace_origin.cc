#include "trace/trace_origin.h"

#include <charconv>

#include "base/text.h"
#include "json/text.h"

namespace stoker {
namespace {

/// Members of the object that the text begins with.
class OriginHandler final : public json::Events {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool integer(std::int64_t value) override {
    if (depth_ != 1) return true;
    constexpr std::int64_t kMostRanks = 1 << 20;  // more are no job of today
    if (value < 0 || value > kMostRanks) return true;
    if (key_ == "rank") origin.rank = value;
    if (key_ == "world_size") origin.world_size = value;
    return true;
  }
  bool large_integer(std::uint64_t) override { return true; }
  bool real(double) override { return true; }
  bool string(std::string& value) override {
    if (depth_ == 1 && key_ == "backend") origin.backend = value;
    return true;
  }
  bool key(std::string& value) override {
    if (depth_ == 1) key_ = value;
    return true;
  }
  bool begin_object() override {
    ++depth_;
    return true;
  }
  bool end_object() override { return --depth_ > 0; }
  bool begin_array() override {
    ++depth_;
    return true;
  }
  bool end_array() override { return --depth_ > 0; }

  TraceOrigin origin;

 private:
  int depth_ = 0;
  std::string key_;
};

constexpr std::string_view kBlanks = " \t\r\n";

/// The number in digits that `text` begins with, behind at most one mark: "3", "_3", "-03".
std::optional<std::int64_t> leading_number(std::string_view text) {
  if (!text.empty() && (text[0] == '_' || text[0] == '-' || text[0] == '.' || text[0] == '='))
    text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr std::int64_t kMostRanks = 1 << 20;
  if (error != std::errc{} || number < 0 || number > kMostRanks) return std::nullopt;
  return number;
}

}  // namespace

TraceOrigin origin_of(std::string_view content) {
  constexpr std::string_view kKey = "\"distributedInfo\"";
  for (std::size_t at = content.find(kKey); at != std::string_view::npos;
       at = content.find(kKey, at + 1)) {
    if (at > 0 && content[at - 1] == '\\') continue;
    std::size_t next = content.find_first_not_of(kBlanks, at + kKey.size());
    if (next == std::string_view::npos || content[next] != ':') continue;
    next = content.find_first_not_of(kBlanks, next + 1);
    if (next == std::string_view::npos || content[next] != '{') continue;
    OriginHandler handler;
    // What follows the object is no part of it: the reading ends there.
    (void)json::read_events(content.substr(next), handler);
    return handler.origin;
  }
  return {};
}

std::optional<std::int64_t> rank_in_name(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  const std::string name =
      lower_case(slash == std::string_view::npos ? file : file.substr(slash + 1));
  for (const std::string_view word : {"rank", "worker", "gpu"}) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
      const auto number = leading_number(std::string_view(name).substr(at + word.size()));
      if (number) return number;
    }
  }
  for (const std::string_view mark : {"_r", "-r", ".r"}) {
    for (std::size_t at = name.find(mark); at != std::string::npos; at = name.find(mark, at + 1)) {
      const std::size_t digit = at + mark.size();
      if (digit < name.size() && name[digit] >= '0' && name[digit] <= '9')
        return leading_number(std::string_view(name).substr(digit));
    }
  }
  return std::nullopt;
}

}  // namespace stoker
