#include "cli/outside/measuring.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <system_error>

namespace stoker::cli {
namespace fs = std::filesystem;

bool UnnamedRows::make() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (error) return false;
  std::string path = (folder / "stoker-rows-XXXXXX").string();
  descriptor_ = mkstemp(path.data());  // the child inherits it
  if (descriptor_ >= 0) unlink(path.c_str());
  return descriptor_ >= 0;
}

UnnamedRows::~UnnamedRows() {
  if (descriptor_ >= 0) close(descriptor_);
}

fs::path UnnamedRows::path() const { return "/dev/fd/" + std::to_string(descriptor_); }

Result<fs::path> rows_path(const std::string& named, const char* flag, UnnamedRows& unnamed) {
  if (!named.empty()) return fs::path(named);
  if (unnamed.make()) return unnamed.path();
  return fail(ErrorCode::kIo, std::string("cannot make a temporary file; give ") + flag +
                                  " ROWS.json, or mend TMPDIR");
}

InterruptsForChild::InterruptsForChild()
    : before_(std::signal(SIGINT, [](int) {})) {}  // a handler, so exec resets it

InterruptsForChild::~InterruptsForChild() { std::signal(SIGINT, before_); }

}  // namespace stoker::cli
