#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/text.h"
#include "report/model/input_plan_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

/// Columns of the text below an entry of a list, and where its lines end.
constexpr std::size_t kPlanIndent = 5, kPlanWidth = 110;

const char* python(bool value) { return value ? "True" : "False"; }

std::string settings_text(const LoaderSettings& s) {
  std::string text = fmt::format("num_workers={}", s.workers);
  if (s.workers > 0) text += fmt::format(", prefetch_factor={}", s.prefetch);
  text += fmt::format(", pin_memory={}", python(s.pin));
  if (s.workers > 0) text += fmt::format(", persistent_workers={}", python(s.persistent));
  if (!s.in_order) text += ", in_order=False";
  return text + fmt::format(", batch_size={}", s.batch);
}

/// "+12 %", and one digit more below ten percent.
std::string gain_text(double gain) {
  return std::fabs(gain) < 0.0995 ? fmt::format("{:+.1f} %", 100 * gain)
                                  : fmt::format("{:+.0f} %", 100 * gain);
}

std::string signed_bytes(Bytes bytes) {
  return bytes.count() < 0 ? "-" + human_bytes(-bytes) : "+" + human_bytes(bytes);
}

std::string headline(const InputPlan& p, const ReportContext& c) {
  const LoaderForecast& f = p.forecast;
  std::string text = "BEST: " + settings_text(p.best) + "\n";
  const std::string copy =
      p.copy.count() > 0
          ? fmt::format(" ({} of it copying out of pageable memory)", human_time(p.copy))
          : "";
  text += fmt::format("  {} {}/s; a step of {}{} waits {} for input ({:.1f} % of the time)\n",
                      rate(p.samples_per_s), c.sample_word, human_time(p.step), copy,
                      human_time(f.wait), 100 * p.gpu_waits);
  text += fmt::format("  first batch after {}", human_time(f.first_batch));
  if (p.epoch_s.value > 0) {
    text += fmt::format("; {} samples: {} an epoch", with_commas(c.dataset_samples),
                        human_time(kSecond * p.epoch_s.value));
    if (p.first_epoch_s.value > 0) {
      text +=
          fmt::format(", the first {} (all is read from storage; later {:.0f} % comes from memory)",
                      human_time(kSecond * p.first_epoch_s.value), 100 * p.cached);
    }
    if (p.epoch_cost.value > 0) text += ", " + money(p.epoch_cost.value, c.currency);
  }
  text +=
      fmt::format("\n  holds {} of /dev/shm, {} pinned, about {} in workers; {} file descriptors",
                  human_bytes(f.shared_memory), human_bytes(f.pinned_memory),
                  human_bytes(f.worker_memory), f.file_descriptors);
  return text + (p.ranks > 1 ? " a process\n" : "\n");
}

std::string why(const InputPlan& p, const ReportContext& c) {
  std::string text;
  if (p.stop) {
    text = fmt::format(
        "Why: the step is the limit; without it the loader would deliver {} {}/s. STOP here: no "
        "change of\nthe input brings more until the step is faster.\n",
        rate(p.ceiling), c.sample_word);
  } else {
    text = fmt::format("Why: limited by {}; the step alone would allow {} {}/s.\n",
                       input_limit_text(p.forecast.limit),
                       number(p.gpus * static_cast<double>(p.best.batch) / seconds(p.step)),
                       c.sample_word);
  }
  if (!p.shortage.empty()) text += "The host forbids more: " + p.shortage + ".\n";
  return text + fmt::format("{}: {}: {} {}/s, the GPU waits {:.0f} % of the time.\n",
                            p.now_known ? "Now" : "PyTorch's defaults", settings_text(p.now),
                            number(p.gpus * p.now_forecast.samples_per_s), c.sample_word,
                            p.now_forecast.interval.count() > 0
                                ? 100 * (p.now_forecast.wait / p.now_forecast.interval)
                                : 0);
}

std::string knob_text(std::size_t number, const Knob& k, const ReportContext& c) {
  std::string what = fmt::format("{}: {}", k.change, gain_text(k.gain));
  if (k.gain_high - k.gain_low > 0.01)
    what += fmt::format(" [{} to {}]", gain_text(k.gain_low), gain_text(k.gain_high));
  if (k.epoch_seconds != 0) {
    what += fmt::format(", {} {} an epoch", human_time(kSecond * std::fabs(k.epoch_seconds)),
                        k.epoch_seconds > 0 ? "saved" : "lost");
    if (k.epoch_money != 0) what += " (" + money(std::fabs(k.epoch_money), c.currency) + ")";
  }
  if (k.memory.count() != 0) what += ", " + signed_bytes(k.memory) + " of host memory";
  return labelled(fmt::format("{:>3}.", number), {what}, kPlanWidth, kPlanIndent) +
         labelled("", {"Risk: " + k.risk}, kPlanWidth, kPlanIndent);
}

std::string knobs_text(const InputPlan& p, const ReportContext& c) {
  std::string text;
  std::size_t number = 0;
  bool beyond = false;
  for (const Knob& k : p.knobs) {
    if (number == 0 && k.kind == KnobKind::kSetting)
      text += fmt::format("\nSettings, from {}, each on top of those before it\n",
                          p.now_known ? "the loader as it is" : "PyTorch's defaults");
    if (k.kind != KnobKind::kSetting && !beyond) {
      text += "\nBeyond the settings, each alone on top of them\n";
      beyond = true;
    }
    text += knob_text(++number, k, c);
  }
  return text;
}

std::string list(const std::string& heading, const std::vector<std::string>& items) {
  if (items.empty()) return {};
  std::string text = "\n" + heading + "\n";
  for (const std::string& item : items) text += labelled("   -", {item}, kPlanWidth, kPlanIndent);
  return text;
}

std::vector<std::string> sentences(const std::vector<Finding>& findings) {
  std::vector<std::string> list;
  for (const Finding& f : findings) {
    list.push_back((f.severity == Severity::kWarning ? "WARNING " : "") + f.name + ": " +
                   f.evidence + ". Cure: " + f.cure + ".");
  }
  return list;
}

std::string thesis_text(const InputPlan& p, const ReportContext& c) {
  if (!p.thesis_has_none.empty()) return "\nThesis's rule: " + p.thesis_has_none + ".\n";
  if (!p.thesis) return {};
  const ThesisAnswer& a = p.thesis->answer;
  return fmt::format(
      "\nThesis's rule: batch {} and {} on the host (limited by {}): W B I = {}, t_d {}, "
      "t_g {}\n  simulated: {} {}/s, against {} with the settings above\n",
      a.batch, counted(a.workers, "worker"), a.limit, human_bytes(a.memory), human_time(a.load),
      human_time(a.step), number(p.gpus * p.thesis->forecast.samples_per_s), c.sample_word,
      number(p.samples_per_s.value));
}

}  // namespace

std::string input_remarks_text(const InputPlan& p, const ReportContext& c) {
  std::vector<Finding> warnings;
  std::copy_if(p.findings.begin(), p.findings.end(), std::back_inserter(warnings),
               [](const Finding& f) { return f.severity == Severity::kWarning; });
  const std::string text = list("Input, with these settings", sentences(warnings)) +
                           list("Input, with the loader as it is now", sentences(p.findings_now)) +
                           thesis_text(p, c);
  return text.empty() ? text : text.substr(1) + "\n";
}

std::string input_plan_text(const InputPlan& p, const ReportContext& c) {
  std::string text = c.model_line + "\n\n" + headline(p, c) + "\n" + why(p, c) + knobs_text(p, c);
  text += list("Not worth trying", p.traps);
  text += list("Findings, with these settings", sentences(p.findings));
  text += list("Findings, with the loader as it is now", sentences(p.findings_now));
  text += thesis_text(p, c) + "\n";
  text += footer(c.rests_on, c.assumed, c.excluded);
  return text + diagnostics(c.data);
}

}  // namespace stoker
