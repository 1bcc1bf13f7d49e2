#include "input/probe/residency.h"

#include <algorithm>

#include "base/opened_file.h"
#include "system/clocks.h"
#include "system/page_cache.h"

namespace stoker {
namespace {

Residency ask(std::span<const DataFile> files, Nanos deadline, bool cachestat) {
  Residency out;
  double resident = 0, all = 0;
  for (const DataFile& file : files) {
    if (out.files > 0 && wall_time() > deadline) break;
    const OpenedFile opened(file.path);
    if (!opened.good()) continue;
    const auto pages = cachestat ? cached_pages_by_cachestat(opened.handle())
                                 : cached_pages_by_mincore(opened.handle(), file.size);
    if (!pages) {
      if (cachestat) return ask(files, deadline, false);
      continue;
    }
    const double whole = pages_in(file.size);
    resident += std::min(*pages, whole);
    all += whole;
    ++out.files;
  }
  if (out.files > 0) out.method = cachestat ? "cachestat" : "mincore";
  out.share = all > 0 ? resident / all : 0;
  return out;
}

}  // namespace

Residency residency_of(std::span<const DataFile> files, std::size_t at_most, Nanos deadline) {
  return ask(files.first(std::min(at_most, files.size())), deadline, true);
}

Residency residency_by_mincore(std::span<const DataFile> files) {
  return ask(files, 1e18 * kSecond, false);
}

}  // namespace stoker
