#pragma once

// For tests: writes pickles of protocol 2 as text is written, so that a test can show its snapshot.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stoker::test {

/// The opcodes of one value.
struct P {
  std::string bytes;
};

template <class Number>
std::string little_endian(Number value, std::size_t length) {
  std::string result;
  for (std::size_t i = 0; i < length; ++i)
    result += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
  return result;
}

inline P integer(std::int64_t value) { return {"\x8a\x08" + little_endian(value, 8)}; }
inline P text(const std::string& value) { return {"X" + little_endian(value.size(), 4) + value}; }
inline P boolean(bool value) { return {value ? "\x88" : "\x89"}; }
inline P list(const std::vector<P>& values) {
  std::string result = "](";
  for (const P& value : values) result += value.bytes;
  return {result + "e"};
}
inline P pair(std::int64_t a, std::int64_t b) {
  return {integer(a).bytes + integer(b).bytes + "\x86"};
}
using Entry = std::pair<std::string, P>;
inline P dict(const std::vector<Entry>& entries) {
  std::string result = "}(";
  for (const auto& [key, value] : entries) result += text(key).bytes + value.bytes;
  return {result + "u"};
}
inline std::string pickle(const P& value) { return "\x80\x02" + value.bytes + "."; }

inline P frame(const std::string& file, std::int64_t line, const std::string& function) {
  return dict({{"filename", text(file)}, {"line", integer(line)}, {"name", text(function)}});
}
inline P block(std::int64_t size, const std::string& state, std::int64_t requested,
               const std::vector<P>& frames = {}) {
  return dict({{"size", integer(size)},
               {"requested_size", integer(requested)},
               {"state", text(state)},
               {"frames", list(frames)}});
}
inline P segment(std::int64_t address, std::int64_t size, const std::string& type,
                 std::int64_t allocated, const std::vector<P>& blocks) {
  return dict({{"device", integer(0)},
               {"address", integer(address)},
               {"total_size", integer(size)},
               {"allocated_size", integer(allocated)},
               {"stream", integer(0)},
               {"segment_type", text(type)},
               {"segment_pool_id", pair(0, 0)},
               {"is_expandable", boolean(false)},
               {"blocks", list(blocks)}});
}
inline P event(const std::string& action, std::int64_t address, std::int64_t size,
               const std::vector<P>& frames = {}) {
  return dict({{"action", text(action)},
               {action == "oom" ? "device_free" : "addr", integer(address)},
               {"size", integer(size)},
               {"stream", integer(0)},
               {"time_us", integer(1)},
               {"frames", list(frames)}});
}
inline P snapshot(const std::vector<P>& segments, const std::vector<P>& trace,
                  const std::vector<Entry>& settings = {}) {
  return dict({{"segments", list(segments)},
               {"device_traces", list({list(trace)})},
               {"allocator_settings", dict(settings)}});
}

}  // namespace stoker::test
