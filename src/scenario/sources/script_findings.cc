#include "scenario/sources/script_findings.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/saturating.h"
#include "base/setting.h"
#include "scenario/request/job_words.h"

namespace stoker {
namespace {

constexpr std::size_t kLinesShown = 6;

std::string text_of(const json::Value& row, const char* key) {
  const json::Value* value = row.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

std::int64_t whole_of(const json::Value& row, const char* key) {
  const json::Value* value = row.find(key);
  return value != nullptr && value->is_number() ? value->as_integer() : 0;
}

ScriptFinding finding_of(const json::Value& row) {
  ScriptFinding finding{.setting = text_of(row, "setting"),
                        .number = {},
                        .text = text_of(row, "value"),
                        .words = text_of(row, "words"),
                        .line = whole_of(row, "line")};
  if (const json::Value* value = row.find("value"); value != nullptr) {
    if (value->is_number()) finding.number = value->as_double();
    if (value->is_bool()) finding.number = value->as_bool() ? 1 : 0;
  }
  return finding;
}

/// One setting: whether the request says it, and how it is taken over from the script.
struct Taker {
  std::string_view setting;
  std::function<bool(const RunRequest&)> said;
  std::function<void(RunRequest&, const ScriptFinding&)> take;
};

void take_whole(std::optional<std::int64_t>& into, const ScriptFinding& finding) {
  if (finding.number && *finding.number >= 0) into = saturating_whole(*finding.number);
}

void take_parallel(RunRequest& r, const ScriptFinding& finding) {
  if (r.gpus.value_or(1) < 2) return;
  if (const auto parallel = parse_parallel(finding.text)) r.job.parallel = *parallel;
}

/// Mixed precision is a setting of FSDP alone; what shares the job was taken over before.
void take_fsdp_precision(RunRequest& r, const ScriptFinding& finding) {
  if (r.gpus.value_or(1) < 2 || !is_fsdp(r.job.parallel.value_or(Parallel::kDdp))) return;
  if (const auto policy = parse_fsdp_precision(finding.text)) r.job.fsdp_precision = *policy;
}

/// Whether a text was given by its flag. One of the environment is what the script itself replaces.
bool by_flag(const GivenText& given, Setting setting) {
  return !given.text.empty() && given.where == mark(setting);
}

/// The script's own value of a variable of PyTorch's allocator or of cuBLAS.
void take_text(GivenText& into, const ScriptFinding& finding) {
  if (finding.text.empty()) return;
  into = {finding.text, "line " + std::to_string(finding.line) + " of the script"};
}

const std::array<Taker, 18>& takers() {
  static const std::array<Taker, 18> kTakers{
      {{"batch", [](const RunRequest& r) { return r.batch.has_value(); },
        [](RunRequest&, const ScriptFinding&) {}},  // the step's own default
       {"workers", [](const RunRequest& r) { return r.workers.has_value(); },
        [](RunRequest& r, const ScriptFinding& f) { take_whole(r.workers, f); }},
       {"prefetch", [](const RunRequest& r) { return r.prefetch.has_value(); },
        [](RunRequest& r, const ScriptFinding& f) { take_whole(r.prefetch, f); }},
       {"pin", [](const RunRequest& r) { return r.pin_given; },
        [](RunRequest& r, const ScriptFinding& f) { r.pin = f.number.value_or(1) != 0; }},
       {"persistent-workers", [](const RunRequest& r) { return r.persistent_workers.has_value(); },
        [](RunRequest& r, const ScriptFinding& f) {
          r.persistent_workers = f.number.value_or(0) != 0;
        }},
       {"start-method", [](const RunRequest& r) { return r.start_method.has_value(); },
        [](RunRequest& r, const ScriptFinding& f) { r.start_method = start_method_named(f.text); }},
       {"samples",
        [](const RunRequest& r) { return r.data.samples.has_value() || !r.data.path.empty(); },
        [](RunRequest& r, const ScriptFinding& f) { take_whole(r.data.samples, f); }},
       {"accumulate", [](const RunRequest& r) { return r.job.accumulate.has_value(); },
        [](RunRequest& r, const ScriptFinding& f) { take_whole(r.job.accumulate, f); }},
       {"optimizer", [](const RunRequest& r) { return r.job.optimizer.kind.has_value(); },
        [](RunRequest&, const ScriptFinding&) {}},  // the step's own
       {"parallel", [](const RunRequest& r) { return r.job.parallel.has_value(); }, take_parallel},
       {"fsdp-mixed-precision",
        [](const RunRequest& r) { return r.job.fsdp_precision.has_value(); }, take_fsdp_precision},
       {"validation", [](const RunRequest& r) { return r.job.validation_batch.has_value(); },
        [](RunRequest& r, const ScriptFinding& f) { take_whole(r.job.validation_batch, f); }},
       {"validation-samples",
        [](const RunRequest& r) { return r.job.validation_samples.has_value(); },
        [](RunRequest& r, const ScriptFinding& f) { take_whole(r.job.validation_samples, f); }},
       {"compile", [](const RunRequest&) { return false; },  // the capture has obeyed the flag
        [](RunRequest& r, const ScriptFinding& f) { r.job.compile = f.number.value_or(0) != 0; }},
       {"alloc-conf",
        [](const RunRequest& r) { return by_flag(r.allocator.config, Setting::kAllocConf); },
        [](RunRequest& r, const ScriptFinding& f) { take_text(r.allocator.config, f); }},
       {"cublas-workspace",
        [](const RunRequest& r) {
          return by_flag(r.allocator.cublas_workspace, Setting::kCublasWorkspace);
        },
        [](RunRequest& r, const ScriptFinding& f) { take_text(r.allocator.cublas_workspace, f); }},
       {"memory-fraction",
        [](const RunRequest& r) { return r.allocator.memory_fraction.has_value(); },
        [](RunRequest& r, const ScriptFinding& f) {
          if (f.number && *f.number > 0 && *f.number <= 1) r.allocator.memory_fraction = f.number;
        }},
       {"precision", [](const RunRequest& r) { return !r.precisions.empty(); },
        [](RunRequest&, const ScriptFinding&) {}}}};
  return kTakers;
}

const Taker* taker_of(const ScriptFinding& finding) {
  const auto it = std::find_if(takers().begin(), takers().end(),
                               [&](const Taker& t) { return t.setting == finding.setting; });
  return it == takers().end() ? nullptr : &*it;
}

/// Switches that a request can only set.
void take_switch(RunRequest& r, const ScriptFinding& finding, bool cpu) {
  const bool on = finding.number.value_or(0) != 0;
  const std::string& name = finding.setting;
  if (name == "clip-checks") r.job.clip_checks |= on && r.job.clip.value_or(true);
  if (name == "zero-grad-after") r.job.zero_grad_after |= on && !r.job.zero_grad_between;
  if (name == "zero-grad-between") r.job.zero_grad_between |= on && !r.job.zero_grad_after;
  if (name == "zero-grad-fills") r.job.zero_grad_fills |= on;
  if (name == "channels-last") r.job.channels_last |= on;
  if (cpu) return;
  if (name == "cudnn-benchmark") r.job.cudnn_benchmark |= on;
  if (name == "cuda-graphs") r.job.cuda_graphs |= on;
  if (name == "fsdp-cpu-offload")
    r.job.fsdp_offload |=
        on && r.gpus.value_or(1) > 1 && is_fsdp(r.job.parallel.value_or(Parallel::kDdp));
  const bool alone = r.gpus.value_or(1) < 2;
  if (name == "ddp-buckets") r.job.ddp_alone |= on && alone;
  if (name == "bucket-view") r.job.bucket_view |= on && (!alone || r.job.ddp_alone);
}

/// A step file of a script is asked about in its own precision, which overrules nothing.
bool asks_for_its_precision(const RunRequest& asked, const ScriptFinding& finding) {
  return finding.setting == "precision" &&
         std::any_of(asked.precisions.begin(), asked.precisions.end(),
                     [&](Precision p) { return capture_precision(p) == finding.text; });
}

}  // namespace

ScriptFindings read_findings(const json::Value& step_file) {
  ScriptFindings findings;
  const json::Value* script = step_file.find("script");
  if (script == nullptr || !script->is_object()) return findings;
  findings.file = std::filesystem::path(text_of(*script, "file")).filename().string();
  if (const json::Value* found = script->find("found"); found != nullptr && found->is_array()) {
    for (const json::Value& row : *found) findings.found.push_back(finding_of(row));
  }
  if (const json::Value* reads = script->find("reads"); reads != nullptr && reads->is_array()) {
    for (const json::Value& row : *reads)
      findings.reads.push_back({text_of(row, "operator"), text_of(row, "answer"),
                                whole_of(row, "line"), whole_of(row, "count")});
  }
  return findings;
}

RunRequest with_findings(RunRequest request, const ScriptFindings& findings, bool cpu) {
  const RunRequest asked = request;
  for (const ScriptFinding& finding : findings.found) {
    const Taker* taker = taker_of(finding);
    if (taker == nullptr) take_switch(request, finding, cpu);
    else if (!taker->said(asked) && !(cpu && finding.setting == "pin"))
      taker->take(request, finding);
  }
  if (asked.job.validation_batch == 0)
    request.job.validation_samples = asked.job.validation_samples;  // of a pass that is left out
  return request;
}

std::string findings_words(const RunRequest& asked, const ScriptFindings& findings) {
  std::string words;
  for (const ScriptFinding& finding : findings.found) {
    words += (words.empty() ? "" : ", ") + finding.words;
    const Taker* taker = taker_of(finding);
    const bool overruled =
        taker != nullptr && taker->said(asked) && !asks_for_its_precision(asked, finding);
    if (finding.line > 0 || overruled) {
      words += " (" + (finding.line > 0 ? "line " + std::to_string(finding.line) : "");
      words +=
          (finding.line > 0 && overruled ? ", " : "") + std::string(overruled ? "overruled" : "");
      words += ")";
    }
  }
  return words.empty() ? words : "found in " + findings.file + ": " + words;
}

void note_reads(const ScriptFindings& findings, Diagnostics& data) {
  if (findings.reads.empty()) return;
  std::string places;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < findings.reads.size(); ++i) {
    const ScriptRead& read = findings.reads[i];
    count += read.count;
    if (i < kLinesShown)
      places += (places.empty() ? "" : ", ") + std::string("line ") + std::to_string(read.line) +
                " got " + read.answer;
  }
  if (findings.reads.size() > kLinesShown) places += ", ...";
  data.add("script_reads", Severity::kNote,
           findings.file + " read values that a capture does not have: " + places, count);
}

}  // namespace stoker
