#include "trace/event_reader.h"

#include <charconv>
#include <cmath>

#include "base/packed_file.h"
#include "json/repair.h"
#include "json/text.h"
#include "json/written_events.h"

namespace stoker {
namespace {

/// Most that a number of a trace counts: beyond it no sum of events is safe.
constexpr double kMostNumber = static_cast<double>(std::int64_t{1} << 60);
/// Nanoseconds of 73 years on either side: of any two times the difference is a number.
constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 61;

std::int64_t whole_of(double value) {
  return std::abs(value) <= kMostNumber ? std::llround(value) : 0;
}

std::optional<std::int64_t> nanoseconds_of(double microseconds) {
  constexpr double kNanosAMicro = 1e3;
  const double value = microseconds * kNanosAMicro;
  if (!(std::abs(value) <= static_cast<double>(kMostNanoseconds))) return std::nullopt;
  return std::llround(value);
}
/// Digit by digit: microseconds of the epoch with three decimals are more than a double holds.
std::optional<std::int64_t> nanoseconds_of(double microseconds, std::string_view written) {
  constexpr std::size_t kMostDigits = 15;  // 31 years in microseconds; what is longer is no time
  constexpr std::size_t kDecimals = 3;
  const std::size_t point = written.find('.');
  const bool negative = written.starts_with('-');
  if (point == std::string_view::npos || point > kMostDigits + 1 + (negative ? 1 : 0))
    return nanoseconds_of(microseconds);
  std::string digits(written.substr(0, point));
  std::string_view decimals = written.substr(point + 1);
  const std::size_t given = std::min(decimals.size(), kDecimals);
  digits += decimals.substr(0, given);
  digits.append(kDecimals - given, '0');
  std::int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end ||
      decimals.find_first_not_of("0123456789") != std::string_view::npos)
    return nanoseconds_of(microseconds);
  if (decimals.size() > kDecimals && decimals[kDecimals] >= '5') value += negative ? -1 : 1;
  return value;
}
std::optional<std::int64_t> nanoseconds_of(std::int64_t microseconds) {
  constexpr std::int64_t kNanosAMicro = 1000, kMost = kMostNanoseconds / kNanosAMicro;
  if (microseconds > kMost || microseconds < -kMost) return std::nullopt;
  return microseconds * kNanosAMicro;
}

/// Members of `args` that are kept as text.
bool names_collective(std::string_view key) {
  return key == "Collective name" || key == "Process Group Name" || key == "Process Group Ranks";
}

/// Puts the events together from the pieces of the text and hands them on.
class EventHandler final : public json::WrittenEvents {
 public:
  explicit EventHandler(TraceSink& sink) : sink_(sink) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool integer(std::int64_t value) override {
    number(value, nanoseconds_of(value));
    return true;
  }
  bool large_integer(std::uint64_t value) override {
    number(whole_of(static_cast<double>(value)), nanoseconds_of(static_cast<double>(value)));
    return true;
  }
  bool real(double value) override {
    number(whole_of(value), nanoseconds_of(value));
    return true;
  }
  bool decimal(double value, std::string_view written) override {
    number(whole_of(value), nanoseconds_of(value, written));
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ == event_depth_) {
      if (std::string* field = text_field()) *field = value;
    }
    const bool wanted = depth_ == event_depth_ ? key_ == "ts" || key_ == "dur"
                                               : depth_ == event_depth_ + 1 && in_args_;
    if (!wanted) return true;
    if (depth_ > event_depth_ && names_collective(key_)) event_.texts.emplace_back(key_, value);
    double parsed = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, parsed);
    if (error == std::errc{} && stop == end) return decimal(parsed, value);
    return true;
  }
  bool key(std::string& value) override {
    if (depth_ == event_depth_ || depth_ == event_depth_ + 1 || depth_ == 1) key_ = value;
    if (depth_ == event_depth_) in_args_ = value == "args";
    return true;
  }
  bool begin_object() override {
    ++depth_;
    if (in_events_ && depth_ == event_depth_) {
      event_.name.clear();
      event_.category.clear();
      event_.phase.clear();
      event_.process.clear();
      event_.thread.clear();
      event_.start_ns = event_.duration_ns = std::nullopt;
      event_.args.clear();
      event_.texts.clear();
    }
    return true;
  }
  bool end_object() override {
    if (in_events_ && depth_ == event_depth_) {
      ++events_;
      sink_.take(event_);
    }
    --depth_;
    return true;
  }
  bool begin_array() override {
    ++depth_;
    // {"traceEvents": [...]} or the bare list.
    if (!in_events_ && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"))) {
      in_events_ = found_ = true;
      event_depth_ = depth_ + 1;
    }
    return true;
  }
  bool end_array() override {
    if (in_events_ && depth_ == event_depth_ - 1) resume();
    --depth_;
    return true;
  }

  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] bool within_events() const { return in_events_; }
  [[nodiscard]] std::int64_t events() const { return events_; }
  /// After damage within the list of events: what follows is read as a list of its own.
  void begin_again() {
    resume();
    depth_ = 0;
  }

 private:
  static constexpr int kNever = -10;

  void resume() {
    event_depth_ = kNever;
    in_events_ = in_args_ = false;
  }
  std::string* text_field() {
    if (key_ == "name") return &event_.name;
    if (key_ == "cat") return &event_.category;
    if (key_ == "ph") return &event_.phase;
    if (key_ == "pid") return &event_.process;
    if (key_ == "tid") return &event_.thread;
    return nullptr;
  }
  void number(std::int64_t whole, std::optional<std::int64_t> nanoseconds) {
    if (depth_ == event_depth_) {
      if (key_ == "ts") event_.start_ns = nanoseconds;
      if (key_ == "dur") event_.duration_ns = nanoseconds;
      if (key_ == "pid") event_.process = std::to_string(whole);
      if (key_ == "tid") event_.thread = std::to_string(whole);
    } else if (depth_ == event_depth_ + 1 && in_args_) {
      event_.args.emplace_back(key_, whole);
    }
  }

  TraceSink& sink_;
  std::int64_t events_ = 0;
  int depth_ = 0, event_depth_ = kNever;
  bool in_events_ = false, in_args_ = false, found_ = false;
  std::string key_;
  ProfilerEvent event_;
};

/// What was read of a text, and what had to be passed over.
struct Passage {
  std::optional<std::size_t> damage;  ///< where the text stopped being JSON before any event
  std::int64_t places = 0;
  bool cut = false;
};

/// Where an event begins behind `from`: a brace behind a comma, which is its place.
std::size_t next_event(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('{', from); at != std::string_view::npos;
       at = text.find('{', at + 1)) {
    const std::size_t before = text.find_last_not_of(" \t\r\n", at - 1);
    if (at > 0 && before != std::string_view::npos && before >= from && text[before] == ',')
      return before;
  }
  return std::string_view::npos;
}

/// Reads on behind each place that is no JSON, at the next event. `text` is changed where that is.
Passage read_all(std::string& text, EventHandler& handler) {
  /// More are no trace with some damage.
  constexpr std::int64_t kMostPlaces = 1000;
  Passage passage;
  std::size_t from = 0;
  while (true) {
    const auto damage = json::read_events(std::string_view(text).substr(from), handler);
    if (!damage) return passage;
    if (!handler.found()) return {.damage = from + *damage};
    const std::size_t at = std::min(from + *damage, text.size());
    // Behind the last event of a list that was read as one of its own stands the end of the whole.
    if (!handler.within_events()) return passage;
    const std::size_t next = next_event(text, at > 0 ? at - 1 : 0);
    passage.cut = next == std::string_view::npos && at + 1 >= text.size();
    if (passage.cut || ++passage.places > kMostPlaces || next == std::string_view::npos)
      return passage;
    handler.begin_again();
    text[next] = '[';
    from = next;
  }
}

}  // namespace

std::optional<std::int64_t> ProfilerEvent::arg(std::string_view key) const {
  // The last counts, as in JSON.
  for (auto it = args.rbegin(); it != args.rend(); ++it)
    if (it->first == key) return it->second;
  return std::nullopt;
}

std::string_view ProfilerEvent::text(std::string_view key) const {
  for (auto it = texts.rbegin(); it != texts.rend(); ++it)
    if (it->first == key) return it->second;
  return {};
}

Result<TraceReading> read_trace_events(std::string_view content, const std::string& where,
                                       TraceSink& sink) {
  TraceReading reading;
  reading.origin = origin_of(content);
  {
    EventHandler handler(sink);
    if (!json::read_events(content, handler)) {
      if (!handler.found())
        return fail(ErrorCode::kBadInput,
                    "key traceEvents is missing; is it a trace of torch.profiler?", where);
      reading.events = handler.events();
      return reading;
    }
  }
  // Profilers write inf, NaN, paths with single backslashes and bytes that are no UTF-8.
  json::Repaired again = json::repaired(content);
  sink.restart();
  EventHandler handler(sink);
  const Passage passage = read_all(again.text, handler);
  if (passage.damage) {
    return fail(ErrorCode::kBadInput,
                "is not whole JSON (at byte " + std::to_string(*passage.damage) +
                    "); export the trace again",
                where);
  }
  if (!handler.found())
    return fail(ErrorCode::kBadInput,
                "key traceEvents is missing; is it a trace of torch.profiler?", where);
  reading.events = handler.events();
  reading.damaged_places = passage.places;
  reading.cut = passage.cut;
  reading.repaired = again.count();
  return reading;
}

Result<TraceReading> read_trace_file(const std::filesystem::path& path, TraceSink& sink) {
  const Unpacked file = TRY(read_unpacked(path, kMostTrace));
  TraceReading reading = TRY(read_trace_events(file.content, path.string(), sink));
  reading.cut = reading.cut || file.cut;
  return reading;
}

}  // namespace stoker
