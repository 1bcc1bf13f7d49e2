#include "study/trial/no_writing.h"

#include <cerrno>
#include <cstring>

namespace stoker::study {
namespace {

const char* cure_of(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      return "; make room on its disk and run the same line again: nothing that ended is lost";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; a study needs a folder that can be written to: --store names one";
    case ENOENT:
    case ENOTDIR:
      return "; make the folder first, or name another with --store";
    case ENOLCK:
      return "; a study needs a file system with locks: --store names one elsewhere";
    default:
      return "";
  }
}

}  // namespace

tl::unexpected<Error> no_writing(const char* what, const std::filesystem::path& path, int reason) {
  return fail(ErrorCode::kIo,
              std::string("cannot be ") + what + ": " + std::strerror(reason) + cure_of(reason),
              path.string());
}

tl::unexpected<Error> no_writing(const char* what, const std::filesystem::path& path) {
  return no_writing(what, path, errno);
}

}  // namespace stoker::study
