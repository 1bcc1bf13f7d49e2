#include "snapshot/kineto_memory.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/packed_file.h"
#include "json/repair.h"
#include "json/text.h"

namespace stoker {
namespace {

/// Profiles of a few steps; larger ones are cut by the profiler's schedule.
constexpr Bytes kMaxTrace{4LL << 30};
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
/// Most bytes of all events together, so that no sum can overflow; what goes beyond is left out and
/// counted.
constexpr std::int64_t kMaxTotal = std::int64_t{1} << 60;

/// Reads the trace event by event, keeping only those of memory.
class TraceHandler final : public json::Events {
 public:
  struct Fields {
    std::string name;
    std::optional<double> time;
    std::map<std::string, std::int64_t, std::less<>> args;
  };

  bool null() override { return value_done(); }
  bool boolean(bool) override { return value_done(); }
  bool integer(std::int64_t value) override { return number(static_cast<double>(value), value); }
  bool large_integer(std::uint64_t value) override {
    return number(static_cast<double>(value), static_cast<std::int64_t>(value));
  }
  bool real(double value) override { return number(value, whole_of(value)); }
  /// Some writers put numbers in quotes.
  bool string(std::string& value) override {
    if (depth_ == event_depth_ && key_ == "name") event_.name = value;
    const bool wanted =
        depth_ == event_depth_ ? key_ == "ts" : depth_ == event_depth_ + 1 && in_args_;
    double parsed = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, parsed);
    if (wanted && error == std::errc{} && stop == end) return number(parsed, whole_of(parsed));
    return true;
  }
  bool key(std::string& value) override {
    if (depth_ == event_depth_ || depth_ == event_depth_ + 1 || depth_ == 1) key_ = value;
    if (depth_ == event_depth_) in_args_ = value == "args";
    return true;
  }
  bool begin_object() override {
    ++depth_;
    if (in_events_ && depth_ == event_depth_) event_ = {};
    return true;
  }
  bool end_object() override {
    if (in_events_ && depth_ == event_depth_) finish_event();
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
    if (in_events_ && depth_ == event_depth_ - 1) {
      in_events_ = false;
      event_depth_ = kNever;
    }
    --depth_;
    return true;
  }

  [[nodiscard]] bool found() const { return found_; }
  /// After damage within the list of events: what follows is read as a list of its own.
  void resume() {
    depth_ = 0;
    event_depth_ = kNever;
    in_events_ = in_args_ = false;
  }
  [[nodiscard]] bool within_events() const { return in_events_; }
  std::map<std::int64_t, std::vector<KinetoMemoryEvent>> by_device;
  std::int64_t host_events = 0, trace_events = 0, broken = 0, untimed = 0;

 private:
  static constexpr int kNever = -10;

  static bool value_done() { return true; }
  static std::int64_t whole_of(double value) {
    return std::abs(value) <= static_cast<double>(kMaxTotal) ? std::llround(value) : 0;
  }
  bool number(double value, std::int64_t whole) {
    if (depth_ == event_depth_ && key_ == "ts") event_.time = value;
    if (depth_ == event_depth_ + 1 && in_args_) event_.args[key_] = whole;
    return true;
  }

  void finish_event() {
    ++trace_events;
    if (event_.name != "[memory]") return;
    const auto find = [&](std::string_view key) -> std::optional<std::int64_t> {
      const auto found = event_.args.find(key);
      return found == event_.args.end() ? std::nullopt : std::optional(found->second);
    };
    constexpr std::int64_t kCuda = 1;
    const auto type = find("Device Type");
    if (!type) return void(++broken);
    if (*type != kCuda) return void(++host_events);
    KinetoMemoryEvent e;
    e.bytes = std::clamp(find("Bytes").value_or(0), -kMaxTotal, kMaxTotal);
    total_ += std::abs(e.bytes) <= kMaxBytes ? std::abs(e.bytes) : kMaxTotal;
    if (e.bytes == 0 || total_ >= kMaxTotal) return void(++broken);
    e.address = find("Addr").value_or(0);
    const auto total = [&](std::string_view key) -> std::optional<std::int64_t> {
      const auto bytes = find(key);
      return bytes && *bytes >= 0 && *bytes <= kMaxBytes ? bytes : std::nullopt;
    };
    e.total_allocated = total("Total Allocated");
    e.total_reserved = total("Total Reserved");
    auto& events = by_device[find("Device Id").value_or(0)];
    if (!event_.time) ++untimed;
    e.time_us = event_.time.value_or(events.empty() ? 0 : events.back().time_us);
    events.push_back(e);
  }

  std::int64_t total_ = 0;
  int depth_ = 0, event_depth_ = kNever;
  bool in_events_ = false, in_args_ = false, found_ = false;
  std::string key_;
  Fields event_;
};

/// What was read of a text, and what had to be passed over.
struct Reading {
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
Reading read_all(std::string& text, TraceHandler& handler) {
  /// More are no trace with some damage.
  constexpr std::int64_t kMostPlaces = 1000;
  Reading reading;
  std::size_t from = 0;
  while (true) {
    const auto damage = json::read_events(std::string_view(text).substr(from), handler);
    if (!damage) return reading;
    if (!handler.found()) return {.damage = from + *damage};
    const std::size_t at = std::min(from + *damage, text.size());
    // Behind the last event of a list that was read as one of its own stands the end of the whole.
    if (!handler.within_events()) return reading;
    const std::size_t next = next_event(text, at > 0 ? at - 1 : 0);
    reading.cut = next == std::string_view::npos && at + 1 >= text.size();
    if (reading.cut || ++reading.places > kMostPlaces || next == std::string_view::npos)
      return reading;
    handler.resume();
    text[next] = '[';
    from = next;
  }
}

}  // namespace

Result<KinetoMemory> parse_kineto_memory(std::string_view content, const std::string& where,
                                         std::optional<std::int64_t> device) {
  TraceHandler handler;
  std::int64_t repaired = 0;
  Reading reading;
  if (json::read_events(content, handler)) {
    // Profilers write inf, NaN, paths with single backslashes and bytes that are no UTF-8.
    json::Repaired again = json::repaired(content);
    handler = {};
    repaired = again.count();
    reading = read_all(again.text, handler);
    if (reading.damage) {
      return fail(ErrorCode::kBadInput,
                  "is not whole JSON (at byte " + std::to_string(*reading.damage) +
                      "); export the trace again",
                  where);
    }
  }
  if (!handler.found()) {
    return fail(ErrorCode::kBadInput,
                "key traceEvents is missing; is it a trace of torch.profiler?", where);
  }
  KinetoMemory memory;
  memory.host_events = handler.host_events;
  memory.trace_events = handler.trace_events;
  memory.broken_events = handler.broken;
  memory.untimed_events = handler.untimed;
  memory.damaged_places = reading.places;
  memory.cut = reading.cut;
  memory.repaired = repaired;
  const std::vector<KinetoMemoryEvent>* most = nullptr;
  for (const auto& [id, events] : handler.by_device) {
    const bool better = device ? id == *device : !most || events.size() > most->size();
    if (!better) continue;
    most = &events;
    memory.device = id;
  }
  if (!most) {
    return fail(ErrorCode::kUnsupported,
                "holds no [memory] events of " +
                    (device ? "CUDA device " + std::to_string(*device) : "a CUDA device") +
                    " among its " + std::to_string(handler.trace_events) +
                    " events, and the others are not read yet; record with profile_memory=True",
                where);
  }
  memory.events = *most;
  for (const auto& [id, events] : handler.by_device) {
    if (id != memory.device) memory.other_devices += static_cast<std::int64_t>(events.size());
  }
  std::stable_sort(
      memory.events.begin(), memory.events.end(),
      [](const KinetoMemoryEvent& a, const KinetoMemoryEvent& b) { return a.time_us < b.time_us; });
  return memory;
}

Result<KinetoMemory> read_kineto_memory(const std::filesystem::path& path,
                                        std::optional<std::int64_t> device) {
  const Unpacked file = TRY(read_unpacked(path, kMaxTrace));
  KinetoMemory memory = TRY(parse_kineto_memory(file.content, path.string(), device));
  memory.cut = memory.cut || file.cut;
  return memory;
}

}  // namespace stoker
