#include "cli/outside/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/files.h"
#include "base/text.h"
#include "cli/outside/painting.h"

namespace stoker::cli {
namespace {

OutputStyle& output_style() {
  static OutputStyle style;
  return style;
}

}  // namespace

void set_output_style(const OutputStyle& style) { output_style() = style; }

void print(std::string_view text) {
  std::string clean = printable_lines(text);
  // JSON, rows and scripts are for programs.
  const bool prose = !clean.starts_with('{') && !clean.starts_with('[') && !clean.starts_with('#');
  const OutputStyle& style = output_style();
  if (prose && style.columns > 0) clean = wrapped(clean, style.columns);
  if (prose && style.colour) clean = painted(clean);
  std::fwrite(clean.data(), 1, clean.size(), stdout);
}

void say(std::FILE* stream, std::string_view text) {
  std::fputs(printable_lines(text).c_str(), stream);
}

Status write_page(const std::string& file, const std::string& page) {
  TRY(write_file(file, page));
  say(stderr, "stoker: the page is in " + printable(file) + " (" +
                  human_bytes(Bytes(static_cast<std::int64_t>(page.size()))) + ")\n");
  return {};
}

Status finish_output() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return {};
  const std::string reason = errno != 0 ? std::string(": ") + std::strerror(errno) : std::string();
  return fail(ErrorCode::kIo, "cannot be written whole" + reason, "standard output");
}

}  // namespace stoker::cli
