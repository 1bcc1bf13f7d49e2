#include "observe/proc/proc_text.h"

#include <array>
#include <charconv>

#include "system/system_files.h"

namespace stoker::proc {
namespace {

constexpr std::size_t kMostCommand = 512;

/// Takes the next whole number off the front; false at the end or at anything else.
bool take(std::string_view& text, std::int64_t& value) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::int64_t kilobytes(std::string_view status, std::string_view key) {
  constexpr std::int64_t kKiloByte = 1024;
  std::string_view value = value_of(status, key);  // "1234 kB"
  std::int64_t number = 0;
  return take(value, number) ? number * kKiloByte : 0;
}

}  // namespace

std::optional<Stat> parse_stat(std::string_view text) {
  // The name stands in brackets and may hold brackets and blanks itself: the last one ends it.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 >= text.size())
    return std::nullopt;
  Stat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  stat.state = text[close + 2];
  text.remove_prefix(close + 3);
  std::array<std::int64_t, 19> fields{};  // fields 4 to 22
  for (std::int64_t& field : fields) {
    if (!take(text, field)) return std::nullopt;
  }
  stat.parent = fields[0];
  stat.minor_faults = fields[6];
  stat.major_faults = fields[8];
  stat.user_ticks = fields[10];
  stat.system_ticks = fields[11];
  stat.threads = fields[16];
  stat.start_ticks = fields[18];
  return stat;
}

std::optional<ThreadTimes> parse_schedstat(std::string_view text) {
  ThreadTimes times;
  if (!take(text, times.cpu_ns) || !take(text, times.queued_ns)) return std::nullopt;
  return times;
}

std::optional<Io> parse_io(std::string_view text) {
  Io io;
  const auto read = [&](std::string_view key, std::int64_t& value) {
    std::string_view found = value_of(text, key);
    return take(found, value);
  };
  const bool fine = read("rchar", io.read_chars) && read("wchar", io.written_chars) &&
                    read("syscr", io.read_calls) && read("syscw", io.written_calls);
  if (!fine) return std::nullopt;
  read("read_bytes", io.read_bytes);
  read("write_bytes", io.written_bytes);
  return io;
}

Memory parse_memory(std::string_view status) {
  return {kilobytes(status, "VmRSS"), kilobytes(status, "RssAnon"), kilobytes(status, "VmSwap")};
}

std::int64_t parse_pressure(std::string_view text) {
  constexpr std::string_view kTotal = "total=";
  constexpr std::int64_t kNanosAMicro = 1000;
  const std::size_t at = text.find(kTotal);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + kTotal.size());
  std::int64_t micros = 0;
  return take(text, micros) ? micros * kNanosAMicro : 0;
}

std::int64_t parse_open_files_limit(std::string_view limits) {
  constexpr std::string_view kLine = "Max open files";
  const std::size_t at = limits.find(kLine);
  if (at == std::string_view::npos) return 0;
  limits.remove_prefix(at + kLine.size());
  std::int64_t soft = 0;
  return take(limits, soft) ? soft : 0;
}

std::string command_of(std::string_view cmdline) {
  while (!cmdline.empty() && cmdline.back() == '\0') cmdline.remove_suffix(1);
  std::string command(cmdline.substr(0, kMostCommand));
  for (char& c : command) {
    if (c == '\0') c = ' ';
    // Control characters could drive the terminal that this is shown on; UTF-8 stays.
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return command;
}

std::string text_in_environment(std::string_view environ, std::string_view name) {
  while (!environ.empty()) {
    const std::size_t end = std::min(environ.find('\0'), environ.size());
    const std::string_view entry = environ.substr(0, end);
    environ.remove_prefix(std::min(end + 1, environ.size()));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return std::string(entry.substr(name.size() + 1));
  }
  return {};
}

std::optional<std::int64_t> number_in_environment(std::string_view environ, std::string_view name) {
  return whole_number(text_in_environment(environ, name));
}

}  // namespace stoker::proc
