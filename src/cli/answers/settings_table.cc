#include "cli/answers/settings_table.h"

#include <algorithm>

#include "base/setting.h"
#include "base/text.h"
#include "cli/answers/add_once.h"
#include "cli/arguments/written_values.h"
#include "cli/outside/output.h"
#include "cli/outside/scenario_tools.h"
#include "cli/request/global_batch.h"
#include "cli/request/report_context.h"
#include "cli/request/run_request.h"
#include "forecast/memory/verdicts.h"
#include "report/model/settings_table.h"
#include "scenario/resolve/resolve.h"

namespace stoker::cli {
namespace {

constexpr std::size_t kMostRows = 64;

bool is_list(const std::string& text) { return text.find(',') != std::string::npos; }

/// One combination that is asked for, in words as they were typed.
struct AskedSettings {
  std::string batch, seq_len, precision;
};

/// What the footer and the first line say of all rows.
struct Told {
  std::optional<Resolved> first;
  Facts facts;
  std::vector<std::string> memory_bases;
};

std::vector<AskedSettings> combinations(const RunOptions& o, const std::string& batch) {
  std::vector<AskedSettings> all;
  for (const std::string& precision : split(o.precision, ',')) {
    for (const std::string& seq_len : split(o.job.seq_len, ',')) {
      for (const std::string& samples : split(batch, ','))
        all.push_back({samples, seq_len, precision});
    }
  }
  return all;
}

Result<RunRequest> request_of(const RunOptions& o, const AskedSettings& asked) {
  RunOptions one = o;
  one.precision = asked.precision;
  one.job.seq_len = asked.seq_len;
  RunRequest request = TRY(exact_request(one, named_gpus(o).front()));
  request.batch = TRY(parse_batch(asked.batch));
  return request;
}

Result<SettingsAnswer> answer_of(const RunOptions& o, const AskedSettings& asked,
                                 RunRequest request, Told& told) {
  const ScenarioTools tools = scenario_tools(o.script_run);
  std::string chosen;
  if (o.global_batch) chosen = TRY(share_out(*o.global_batch, request, tools));
  Resolved resolved = TRY(resolve_exactly(request, tools));
  if (!chosen.empty()) resolved.facts.assumed.push_back(chosen);
  auto f = TRY(forecast(resolved.base, resolved.knowledge));
  SettingsAnswer answer;
  answer.limits = TRY(batch_limits_of(resolved));
  add_once(told.facts.rests_on, f.time.basis);
  for (const std::string& phrase : resolved.facts.rests_on) add_once(told.facts.rests_on, phrase);
  for (const std::string& phrase : resolved.facts.assumed) add_once(told.facts.assumed, phrase);
  for (const std::string& phrase : resolved.facts.excluded) add_once(told.facts.excluded, phrase);
  add_once(told.memory_bases, "memory: " + f.memory.device_peak.basis);
  const std::string shortage =
      f.input.known ? host_shortage(resolved.base.machine.host, f.input.loader) : std::string();
  if (!shortage.empty())
    f.diagnostics.add("host_too_small", Severity::kWarning, "the host is too small: " + shortage);
  answer.batch = asked.batch;
  if (is_list(o.job.seq_len)) answer.seq_len = asked.seq_len;
  if (is_list(o.precision)) answer.precision = asked.precision;
  answer.forecast = std::move(f);
  if (!told.first) told.first = std::move(resolved);
  return answer;
}

/// "gpt2 | train, SGD momentum | A100-SXM4-40GB | eager | 1 GPU", without what differs by row.
std::string line_of(const RunOptions& o, const Resolved& first) {
  ModelLine line = first.line(first.base.job);
  const auto cut = [](std::string& text, const std::string& part) {
    const auto at = text.find(part);
    if (at != std::string::npos) text.erase(at, std::min(text.find(',', at + 2), text.size()) - at);
  };
  if (is_list(o.job.seq_len)) cut(line.step, ", seq_len");
  if (is_list(o.precision)) cut(line.job, ", " + std::string(name_of(first.base.job.precision)));
  const int gpus = first.base.job.gpus;
  return line.text() + " | " + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
}

ReportContext context_for(const RunOptions& o, const Told& told) {
  const Resolved& first = *told.first;
  Facts facts = first.facts;
  facts.rests_on = told.facts.rests_on;
  facts.assumed = told.facts.assumed;
  facts.excluded = told.facts.excluded;
  for (const std::string& phrase : told.memory_bases) add_once(facts.rests_on, phrase);
  ReportContext context = context_of(facts);
  context.model_line = line_of(o, first);
  Job alike = first.base.job;
  alike.accumulate = o.global_batch ? 1 : alike.accumulate;  // a column has it
  context.settings = unusual_settings(alike);
  return context;
}

}  // namespace

bool wants_settings_table(const RunOptions& o, const std::string& batch) {
  return is_list(batch) || is_list(o.job.seq_len) || is_list(o.precision);
}

Result<int> answer_settings_table(const RunOptions& o, const std::string& batch) {
  const std::vector<AskedSettings> all = combinations(o, batch);
  if (all.size() > kMostRows)
    return fail(ErrorCode::kUsage,
                std::to_string(all.size()) + " combinations of --batch, --seq-len and " +
                    "--precision are more than a table of 64 holds; leave some out");
  for (const auto& [text, flag] :
       {std::pair(batch, "--batch"), {o.job.seq_len, "--seq-len"}, {o.precision, "--precision"}}) {
    const auto parts = split(text, ',');
    if (parts.size() > 1 && std::find(parts.begin(), parts.end(), "") != parts.end())
      return fail(ErrorCode::kUsage, "\"" + text + "\" has an empty place in its list", flag);
    // "1,024" is one number with a comma, not 1 and 24.
    if (std::any_of(parts.begin(), parts.end(),
                    [](const std::string& part) { return part.size() > 1 && part[0] == '0'; }))
      return fail(ErrorCode::kUsage,
                  "\"" + text + "\" has a number that begins with 0" + likely_words(text), flag);
  }
  Told told;
  std::vector<SettingsAnswer> answers;
  std::optional<Error> first_error;
  for (const AskedSettings& asked : all) {
    auto request = TRY(request_of(o, asked));
    auto answer = answer_of(o, asked, std::move(request), told);
    if (answer) {
      answers.push_back(std::move(*answer));
      continue;
    }
    if (!first_error) first_error = answer.error();
    SettingsAnswer refused;
    refused.batch = asked.batch;
    if (is_list(o.job.seq_len)) refused.seq_len = asked.seq_len;
    if (is_list(o.precision)) refused.precision = asked.precision;
    refused.refused = with_flags(answer.error().text());
    answers.push_back(std::move(refused));
  }
  if (!told.first) return tl::unexpected(*first_error);
  const ReportContext context = context_for(o, told);
  print(o.json ? settings_table_json(answers, context) : settings_table_text(answers, context));
  const bool any = std::any_of(answers.begin(), answers.end(), [&](const SettingsAnswer& a) {
    return a.forecast && is_good(a.forecast->memory.fits, a.forecast->memory.verdict, o);
  });
  return any ? 0 : 1;
}

}  // namespace stoker::cli
