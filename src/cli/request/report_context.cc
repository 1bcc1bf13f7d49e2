#include "cli/request/report_context.h"

#include <cstdlib>

#include "base/setting.h"
#include "base/text.h"
#include "cli/arguments/version.h"
#include "report/text/measured/trained_words.h"

namespace stoker::cli {
namespace {

/// The terminal's own word for its character set, as C libraries read it.
bool shows_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    return simplified(value).find("utf8") != std::string::npos;
  }
  return false;
}

std::vector<std::string> spelled(const std::vector<std::string>& sentences) {
  std::vector<std::string> flags;
  for (const std::string& sentence : sentences) flags.push_back(with_flags(sentence));
  return flags;
}

}  // namespace

ReportContext context_of(const Facts& facts) {
  ReportContext context;
  static_cast<Facts&>(context) = facts;
  context.tool_version = kVersion;
  context.unicode = facts.step != nullptr && shows_utf8();
  context.rests_on = spelled(facts.rests_on);
  context.assumed = spelled(facts.assumed);
  context.excluded = spelled(facts.excluded);
  return context;
}

ReportContext context_of(const Resolved& resolved, const Job& job) {
  ReportContext context = context_of(resolved.facts);
  context.model_line = resolved.line(job).text();
  context.settings = unusual_settings(job);
  if (std::string trained = trained_words(*resolved.base.step); !trained.empty())
    context.settings.push_back(std::move(trained));
  return context;
}

}  // namespace stoker::cli
