#include "snapshot/kineto_memory.h"

#include <algorithm>
#include <map>

#include "base/files.h"
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
    double time = 0;
    std::map<std::string, std::int64_t, std::less<>> args;
  };

  bool null() override { return value_done(); }
  bool boolean(bool) override { return value_done(); }
  bool integer(std::int64_t value) override { return number(static_cast<double>(value), value); }
  bool large_integer(std::uint64_t value) override {
    return number(static_cast<double>(value), static_cast<std::int64_t>(value));
  }
  bool real(double value) override { return number(value, 0); }
  bool string(std::string& value) override {
    if (depth_ == event_depth_ && key_ == "name") event_.name = value;
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
  std::map<std::int64_t, std::vector<KinetoMemoryEvent>> by_device;
  std::int64_t host_events = 0, trace_events = 0, broken = 0;

 private:
  static constexpr int kNever = -10;

  bool value_done() { return true; }
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
    if (find("Device Type").value_or(-1) != kCuda) return void(++host_events);
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
    e.time_us = event_.time;
    by_device[find("Device Id").value_or(0)].push_back(e);
  }

  std::int64_t total_ = 0;
  int depth_ = 0, event_depth_ = kNever;
  bool in_events_ = false, in_args_ = false, found_ = false;
  std::string key_;
  Fields event_;
};

}  // namespace

Result<KinetoMemory> parse_kineto_memory(std::string_view content, const std::string& where,
                                         std::optional<std::int64_t> device) {
  TraceHandler handler;
  std::int64_t repaired = 0;
  if (const auto damage = json::read_events(content, handler)) {
    // Profilers write inf, NaN, paths with single backslashes and bytes that are no UTF-8.
    const json::Repaired again = json::repaired(content);
    handler = {};
    repaired = again.count();
    if (repaired == 0 || json::read_events(again.text, handler)) {
      return fail(
          ErrorCode::kBadInput,
          "is not whole JSON (at byte " + std::to_string(*damage) + "); export the trace again",
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
  const auto content =
      path.extension() == ".gz" ? read_gzip_file(path, kMaxTrace) : read_file(path, kMaxTrace);
  if (!content) return tl::unexpected(content.error());
  return parse_kineto_memory(*content, path.string(), device);
}

}  // namespace stoker
