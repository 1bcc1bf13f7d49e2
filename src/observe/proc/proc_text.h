#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "observe/sample/sample.h"

/// Readers of the files of /proc/PID (proc(5)). Damaged text reads as nothing.
namespace stoker::proc {

/// What of /proc/PID/stat the watch uses.
struct Stat {
  std::string_view name;  ///< comm, blanks and brackets and all
  char state = '?';
  std::int64_t parent = 0;
  std::int64_t minor_faults = 0, major_faults = 0;
  std::int64_t user_ticks = 0, system_ticks = 0;
  std::int64_t threads = 0;
  std::int64_t start_ticks = 0;  ///< since the machine started
};
[[nodiscard]] std::optional<Stat> parse_stat(std::string_view text);

/// The first two numbers of /proc/PID/schedstat.
[[nodiscard]] std::optional<ThreadTimes> parse_schedstat(std::string_view text);

/// /proc/PID/io.
struct Io {
  std::int64_t read_chars = 0, written_chars = 0, read_calls = 0, written_calls = 0;
  std::int64_t read_bytes = 0, written_bytes = 0;
};
[[nodiscard]] std::optional<Io> parse_io(std::string_view text);

/// Memory lines of /proc/PID/status, in bytes.
struct Memory {
  std::int64_t resident = 0, anonymous = 0, swapped = 0;
};
[[nodiscard]] Memory parse_memory(std::string_view status);

/// Nanoseconds of "some" since the start, of a file of /proc/pressure.
[[nodiscard]] std::int64_t parse_pressure(std::string_view text);

/// The soft limit of "Max open files" in /proc/PID/limits; 0: not told.
[[nodiscard]] std::int64_t parse_open_files_limit(std::string_view limits);

/// Arguments separated by blanks; what is no printable text is replaced, and the length is bounded.
[[nodiscard]] std::string command_of(std::string_view cmdline);

/// The value of NAME in /proc/PID/environ; empty: it has none.
[[nodiscard]] std::string text_in_environment(std::string_view environ, std::string_view name);
/// The value of NAME in /proc/PID/environ as a whole number; nullopt: it has none that is one.
[[nodiscard]] std::optional<std::int64_t> number_in_environment(std::string_view environ,
                                                                std::string_view name);

}  // namespace stoker::proc
