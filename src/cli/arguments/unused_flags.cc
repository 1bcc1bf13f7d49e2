#include "cli/arguments/unused_flags.h"

#include <algorithm>
#include <string>

namespace stoker::cli {
namespace {

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool was_given(const Flag& flag) { return stoker::was_given(Binding{flag.names, flag.target}); }

Status refuse_given(const std::vector<Flag>& flags, const std::vector<std::string_view>& names,
                    std::string_view why) {
  for (const Flag& flag : flags) {
    if (contains(names, flag.names) && was_given(flag))
      return fail(ErrorCode::kUsage, std::string(why), flag.names);
  }
  return {};
}

Status refuse_all_but(const std::vector<Flag>& flags, const std::vector<std::string_view>& used,
                      std::string_view why) {
  for (const Flag& flag : flags) {
    if (!contains(used, flag.names) && was_given(flag))
      return fail(ErrorCode::kUsage, std::string(why), flag.names);
  }
  return {};
}

}  // namespace stoker::cli
