#include "cli/answers/against.h"

#include <algorithm>

#include "base/setting.h"
#include "base/text.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/typed_names.h"
#include "cli/outside/scenario_tools.h"
#include "cli/request/run_options.h"
#include "cli/request/run_request.h"
#include "diagnosis/next_run/observed_run.h"
#include "scenario/resolve/resolve.h"

namespace stoker::cli {
namespace {

constexpr double kNanosAMilli = 1e6;

struct Asked {
  RunOptions options;
  std::string batch;
};

/// `gpu` is taken where the words name none.
Result<Asked> asked_in(const std::string& text, const std::string& gpu) {
  std::vector<std::string> words;
  for (std::string& word : split(text, ' ')) {
    if (!word.empty()) words.push_back(std::move(word));
  }
  if (words.empty() || words.front().starts_with('-'))
    return fail(ErrorCode::kUsage,
                "is a model or a script as `stoker predict` takes it, flags behind it: "
                "--against \"resnet50 --batch 64\"",
                "--against");
  Asked asked;
  Command predict{"predict", {}, {}, run_bindings(asked.options, &asked.batch), {}};
  TypedWords typed = TRY(in_our_names("predict", words));
  const bool named = std::ranges::any_of(typed.words, [](const std::string& word) {
    return word == "--gpu" || word.starts_with("--gpu=");
  });
  if (!named) typed.words.insert(typed.words.end(), {"--gpu", gpu});
  TRY(parse_words(predict, typed.words));
  return asked;
}

std::string gpu_of(const JobTimeline& timeline) {
  const WatchFacts& facts = timeline.facts();
  return facts.gpus.empty() ? "cpu" : facts.gpus.front();
}

}  // namespace

Status check_against(const std::string& words) {
  TRY(asked_in(words, "cpu"));
  return {};
}

Result<AgainstForecast> set_against(const std::string& words, const JobTimeline& timeline) {
  Asked asked = TRY(asked_in(words, gpu_of(timeline)));
  const std::size_t ranks = timeline.ranks().size();
  if (asked.options.gpus.empty() && asked.options.gpu != "cpu" && ranks > 1)
    asked.options.gpus = std::to_string(ranks);
  std::optional<std::int64_t> batch;
  if (!asked.batch.empty()) batch = whole_number(asked.batch);
  const ObservedRun seen = TRY(observed_run(timeline, batch, "--against"));
  RunRequest request = TRY(exact_request(asked.options, {asked.options.gpu}));
  request.batch = TRY(parse_batch(asked.batch));
  if (!request.batch) request.batch = BatchRequest(seen.settings.batch);
  if (request.data.path.empty() && !request.data.sample_cost) request.data.observed = seen.sample;
  if (!request.workers) request.workers = seen.settings.workers;
  if (!request.prefetch && seen.settings.workers > 0) request.prefetch = seen.settings.prefetch;
  const Resolved resolved = TRY(resolve_exactly(request, scenario_tools()));
  const Forecast f = TRY(forecast(resolved.base, resolved.knowledge));
  AgainstForecast out;
  out.what = words;
  out.machine = f.gpu_name;
  out.batch = seen.settings.batch;
  out.step_ms = f.step_ms;
  out.samples_per_s = f.samples_per_s;
  out.basis = f.time.basis;
  out.seen_step_ms = seen.consumer.step.count() / kNanosAMilli;
  out.seen_samples_per_s =
      seen.batches_per_s * static_cast<double>(seen.settings.batch) * seen.processes;
  return out;
}

}  // namespace stoker::cli
