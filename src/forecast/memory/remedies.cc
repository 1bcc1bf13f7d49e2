#include "forecast/memory/remedies.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/setting.h"
#include "forecast/node_share.h"
#include "forecast/settings.h"
#include "lower/loop/lower.h"
#include "lower/optimizer/optimizer_recipes.h"
#include "rewrite/checkpoint.h"

namespace stoker {
namespace {

/// Remedies taken together.
constexpr std::size_t kMostTogether = 4;
/// Single stages that are named beside the checkpointing of all blocks.
constexpr std::size_t kMostStages = 2;

/// A change of settings that has not been tried yet.
struct Candidate {
  std::string what, settings;
  std::function<void(Scenario&)> change;
  /// A change of the lowered program, for what no setting expresses.
  std::function<void(const Scenario&, Program&)> rewrite = {};
};

std::string without(Setting setting) { return "without " + mark(setting); }

/// 8-bit states as bitsandbytes keeps them: a byte an element, whose size was the parameter's,
/// and a 4-byte scale for each block of 256; tensors of fewer than 4,096 elements stay as they are
/// (bitsandbytes, optim/optimizer.py, min_8bit_size; functional.py, blocksize).
void quantize_states(const Step& step, Program& program) {
  constexpr std::int64_t kScaleBytes = 4;
  // A model keeps its trained parameters in one type, and the states in the parameters'.
  std::int64_t element_bytes = size_of(DType::kF32);
  for (const Parameter& p : step.parameters) {
    if (p.requires_grad) element_bytes = size_of(step.types[index(p.type)].dtype);
  }
  constexpr std::int64_t kSmallestElements = 4096;
  constexpr std::int64_t kBlock = 256;
  for (Buffer& buffer : program.buffers) {
    const std::int64_t elements = buffer.bytes.count() / element_bytes;
    if (buffer.role != BufferRole::kOptimizerState || elements < kSmallestElements) continue;
    buffer.bytes = Bytes(elements + (elements + kBlock - 1) / kBlock * kScaleBytes);
  }
}

class Search {
 public:
  Search(const Scenario& scenario, const Forecast& now, const Knowledge& knowledge)
      : scenario_(scenario),
        now_(now),
        knowledge_(knowledge),
        peak_(now.memory.outcome.reserved_peak + outside(now)) {}

  void batch() {
    const Job& job = scenario_.job;
    const std::int64_t least = std::max<std::int64_t>(1, scenario_.step->dimensions[0].minimum);
    if (job.batch % 2 == 0 && job.batch / 2 >= least) {
      try_one({"half the batch, twice the accumulation",
               mark(Setting::kBatch) + " " + std::to_string(job.batch / 2) + " " +
                   mark(Setting::kAccumulate) + " " + std::to_string(2 * job.accumulate),
               [](Scenario& s) {
                 set_batch(s, s.job.batch / 2);
                 s.job.accumulate *= 2;
               }});
    }
    if (job.validation_batch && !job.validation_no_grad) {
      try_one({"the validation under torch.no_grad()", without(Setting::kValidationWithGrad),
               [](Scenario& s) { s.job.validation_no_grad = true; }});
    }
    if (job.validation_batch && *job.validation_batch > 1) {
      try_one({"half the batch in the validation",
               mark(Setting::kValidation) + " " + std::to_string(*job.validation_batch / 2),
               [](Scenario& s) { *s.job.validation_batch /= 2; }});
    }
  }

  void precision(const std::vector<OtherPrecision>& others) {
    if (scenario_.job.precision != Precision::kFp32 && scenario_.job.precision != Precision::kTf32)
      return;
    for (const OtherPrecision& other : others) {
      const bool mixed =
          other.precision == Precision::kAmpBf16 || other.precision == Precision::kAmpFp16;
      try_one({mixed ? "mixed precision" : "weights, gradients and arithmetic in half precision",
               mark(Setting::kPrecision) + " " + std::string(name_of(other.precision)),
               [other](Scenario& s) { set_precision(s, *other.step, other.precision); }});
    }
  }

  void checkpointing() {
    if (!scenario_.job.checkpoint.empty()) return;
    const auto blocks = repeated_blocks(*scenario_.step);
    if (blocks.empty()) return;
    try_one({"recompute the repeated blocks in the backward",
             mark(Setting::kCheckpoint) + " blocks",
             [](Scenario& s) { s.job.checkpoint = {"blocks"}; }});
    std::set<std::string> stages;
    for (const std::string& block : blocks) {
      const auto dot = block.rfind('.');
      if (dot != std::string::npos) stages.insert(block.substr(0, dot) + ".*");
    }
    if (stages.size() < 2) return;
    std::vector<Tried> tried;
    for (const std::string& stage : stages) {
      auto one = attempt({"recompute " + stage, mark(Setting::kCheckpoint) + " '" + stage + "'",
                          [stage](Scenario& s) { s.job.checkpoint = {stage}; }});
      if (one) tried.push_back(std::move(*one));
    }
    sort_by_saving(tried);
    if (tried.size() > kMostStages) tried.resize(kMostStages);
    for (Tried& one : tried) keep(std::move(one));
  }

  /// Only language models have scores that are worth it, so for others it is not even counted.
  void loss() {
    if (scenario_.job.loss != LossKernel::kCaptured) return;
    auto fused = attempt({"a fused cross entropy over the scores (flash-attn, Liger)",
                          mark(Setting::kLoss) + " fused",
                          [](Scenario& s) { s.job.loss = LossKernel::kFused; }});
    if (!fused) return;
    const auto saving = static_cast<double>(fused->remedy.saving.count());
    if (saving >= kWorthSaving * static_cast<double>(peak_.count())) keep(std::move(*fused));
  }

  void optimizer() {
    const OptimizerSettings& settings = scenario_.job.optimizer;
    if (has_fused(settings.kind) && settings.loop != OptimizerLoop::kFused) {
      try_one({"the fused optimizer, which needs no temporaries",
               mark(Setting::kOptimizerLoop) + " fused",
               [](Scenario& s) { s.job.optimizer.loop = OptimizerLoop::kFused; }});
    }
    if (settings.loop == OptimizerLoop::kForeach && settings.kind != OptimizerKind::kNone) {
      try_one({"the optimizer one tensor after the other, with small temporaries",
               mark(Setting::kOptimizerLoop) + " for-loop",
               [](Scenario& s) { s.job.optimizer.loop = OptimizerLoop::kForLoop; }});
    }
    if (scenario_.machine.device.cpu() == nullptr && has_8bit_states(settings.kind)) {
      try_one({"8-bit optimizer states (bitsandbytes)", "", [](Scenario&) {},
               [](const Scenario& s, Program& program) { quantize_states(*s.step, program); }});
    }
  }

  void gradients() {
    const Job& job = scenario_.job;
    if (job.zero_grad_before_backward) {
      try_one({"zero_grad before the forward", without(Setting::kZeroGradBetween), [](Scenario& s) {
                 s.job.zero_grad_before_backward = false;
                 s.job.zero_grad_before_forward = true;
               }});
    }
    if (zeroes_after_step(job)) {
      try_one({"zero_grad before the forward", without(Setting::kZeroGradAfter),
               [](Scenario& s) { s.job.zero_grad_before_forward = true; }});
    }
    if (job.zero_grad_fills) {
      try_one({"zero_grad(set_to_none=True)", without(Setting::kZeroGradFills),
               [](Scenario& s) { s.job.zero_grad_fills = false; }});
    }
    if (job.gpus < 2) return;
    if (job.parallel == Parallel::kDdp && !job.gradient_as_bucket_view) {
      try_one({"gradients as views of DDP's buckets", mark(Setting::kBucketView),
               [](Scenario& s) { s.job.gradient_as_bucket_view = true; }});
    }
    if (job.parallel != Parallel::kFsdpZero3) {
      try_one({"FSDP (ZeRO-3) on the same " + std::to_string(job.gpus) + " GPUs",
               mark(Setting::kParallel) + " fsdp", [](Scenario& s) {
                 s.job.parallel = Parallel::kFsdpZero3;
                 s.job.gradient_as_bucket_view = false;
               }});
    }
  }

  void libraries() {
    if (!scenario_.allocator.expandable_segments &&
        scenario_.allocator.max_split_size == kNoSplitLimit) {
      try_one({"expandable segments", mark(Setting::kAllocConf) + " expandable_segments:True",
               [](Scenario& s) { s.allocator.expandable_segments = true; }});
    }
    if (scenario_.job.cudnn == CudnnProfile::kBenchmark) {
      try_one({"cuDNN's own choice of algorithms", without(Setting::kCudnnBenchmark),
               [](Scenario& s) { s.job.cudnn = CudnnProfile::kDefault; }});
    }
  }

  Remedies take() {
    Remedies result;
    sort_by_saving(tried_);
    if (!now_.memory.fits) {
      std::stable_sort(tried_.begin(), tried_.end(), [](const Tried& a, const Tried& b) {
        return a.remedy.verdict < b.remedy.verdict;
      });
      const auto runs_from = std::find_if_not(tried_.begin(), tried_.end(), [](const Tried& t) {
        return t.remedy.verdict != MemoryVerdictWord::kDoesNotFit;
      });
      std::stable_sort(tried_.begin(), runs_from, [](const Tried& a, const Tried& b) {
        return std::pair(a.remedy.verdict, time_of(a.remedy)) <
               std::pair(b.remedy.verdict, time_of(b.remedy));
      });
      result.together = together();
    }
    for (const Tried& t : tried_) {
      const bool small = static_cast<double>(t.remedy.saving.count()) <
                         kWorthSaving * static_cast<double>(peak_.count());
      const bool helps = t.remedy.verdict != MemoryVerdictWord::kDoesNotFit;
      if (small && (now_.memory.fits || !helps)) ++result.too_small;
      else result.list.push_back(t.remedy);
    }
    return result;
  }

 private:
  struct Tried {
    Candidate candidate;
    Remedy remedy;
  };

  static Bytes outside(const Forecast& f) {
    Bytes sum;
    for (const OutsideMemory& part : f.memory.outside) sum += part.bytes;
    return sum;
  }

  static double time_per_sample(const Job& job, const StepTime& time) {
    return time.total.count() /
           (static_cast<double>(job.batch) * job.accumulate * static_cast<double>(job.gpus));
  }

  /// What a remedy that makes the job fit is chosen by: what runs by flushing, and what the time
  /// model does not know, comes after the others.
  static double time_of(const Remedy& r) {
    constexpr double kUnknown = 1e6;
    return r.time_change.value_or(kUnknown) + (r.only_by_flushing ? kUnknown : 0);
  }

  static void sort_by_saving(std::vector<Tried>& list) {
    std::stable_sort(list.begin(), list.end(), [](const Tried& a, const Tried& b) {
      return a.remedy.saving > b.remedy.saving;
    });
  }

  /// Nothing when the changed job cannot be lowered: then it is no remedy.
  [[nodiscard]] std::optional<Remedy> judge(const Scenario& s, const Candidate& candidate) const {
    auto program = lower(*s.step, s.job, s.machine);
    if (!program) return std::nullopt;
    if (candidate.rewrite) candidate.rewrite(s, *program);
    const MemoryVerdict verdict = judge_memory(*program, s.machine, s.allocator);
    Remedy remedy{.what = candidate.what,
                  .settings = candidate.settings,
                  .device_peak = verdict.device_peak,
                  .saving = peak_ - verdict.device_peak,
                  .time_change = {},
                  .fits = verdict.fits,
                  .verdict = word_of(verdict, *program, s.machine, s.allocator, knowledge_, s.job),
                  .only_by_flushing = verdict.only_by_flushing,
                  .estimate = candidate.rewrite != nullptr};
    if (candidate.rewrite) return remedy;  // of a library that the time model does not know
    const auto time = step_time_of(s, *program, knowledge_);
    if (time) {
      remedy.time_change =
          time_per_sample(s.job, *time) / time_per_sample(scenario_.job, now_.time) - 1;
    }
    return remedy;
  }

  [[nodiscard]] std::optional<Tried> attempt(Candidate candidate) const {
    Scenario s = scenario_;
    candidate.change(s);
    auto remedy = judge(s, candidate);
    if (!remedy) return std::nullopt;
    return Tried{std::move(candidate), std::move(*remedy)};
  }

  void keep(Tried tried) { tried_.push_back(std::move(tried)); }
  void try_one(Candidate candidate) {
    if (auto tried = attempt(std::move(candidate))) keep(std::move(*tried));
  }

  /// Several remedies at once; nothing when they cannot be lowered so.
  [[nodiscard]] std::optional<Remedy> judge_all(const std::vector<const Tried*>& set) const {
    Scenario s = scenario_;
    Candidate all;
    std::vector<std::function<void(const Scenario&, Program&)>> rewrites;
    const auto append = [](std::string& list, const std::string& item, const char* separator) {
      list += (list.empty() || item.empty() ? "" : separator) + item;
    };
    std::string unset;  // what no setting does
    for (const Tried* t : set) {
      t->candidate.change(s);
      append(all.what, t->candidate.what, ", ");
      append(all.settings, t->candidate.settings, " ");
      if (t->candidate.settings.empty()) append(unset, t->candidate.what, ", ");
      if (t->candidate.rewrite) rewrites.push_back(t->candidate.rewrite);
    }
    append(all.settings, unset, ", ");
    if (!rewrites.empty()) {
      all.rewrite = [rewrites](const Scenario& changed, Program& program) {
        for (const auto& rewrite : rewrites) rewrite(changed, program);
      };
    }
    return judge(s, all);
  }

  /// Leaves out of a set what its verdict does not need, the slowest first.
  void prune(std::vector<const Tried*>& set, Remedy& remedy) const {
    std::vector<const Tried*> slowest = set;
    std::stable_sort(slowest.begin(), slowest.end(), [](const Tried* a, const Tried* b) {
      return a->remedy.time_change.value_or(0) > b->remedy.time_change.value_or(0);
    });
    for (const Tried* one : slowest) {
      std::vector<const Tried*> fewer = set;
      fewer.erase(std::find(fewer.begin(), fewer.end(), one));
      auto without_it = judge_all(fewer);
      if (!without_it || without_it->verdict > remedy.verdict) continue;
      set = std::move(fewer);
      remedy = std::move(*without_it);
    }
  }

  /// The largest savings one upon the other until it surely fits, else until it is risky; nothing
  /// when one alone is as good, or all are not.
  [[nodiscard]] std::optional<Remedy> together() const {
    MemoryVerdictWord best = MemoryVerdictWord::kDoesNotFit;
    for (const Tried& t : tried_) best = std::min(best, t.remedy.verdict);
    std::vector<const Tried*> by_saving;
    for (const Tried& t : tried_) by_saving.push_back(&t);
    std::stable_sort(by_saving.begin(), by_saving.end(), [](const Tried* a, const Tried* b) {
      return a->remedy.saving > b->remedy.saving;
    });
    for (const MemoryVerdictWord wanted : {MemoryVerdictWord::kFits, MemoryVerdictWord::kRisky}) {
      if (best <= wanted) return std::nullopt;
      if (auto found = together(by_saving, wanted)) return found;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Remedy> together(const std::vector<const Tried*>& by_saving,
                                               MemoryVerdictWord wanted) const {
    std::vector<const Tried*> set;
    Bytes least = peak_;
    for (const Tried* t : by_saving) {
      if (set.size() == kMostTogether) break;
      set.push_back(t);
      auto remedy = judge_all(set);
      if (!remedy || remedy->device_peak >= least) {
        set.pop_back();
        continue;
      }
      least = remedy->device_peak;
      if (remedy->verdict > wanted) continue;
      prune(set, *remedy);
      return remedy;
    }
    return std::nullopt;
  }

  const Scenario& scenario_;
  const Forecast& now_;
  const Knowledge& knowledge_;
  Bytes peak_;
  std::vector<Tried> tried_;
};

/// Doubles the GPUs until each one's shard surely fits.
int gpus_for_fsdp(const Scenario& scenario, const Knowledge& knowledge) {
  Scenario s = scenario;
  s.job.parallel = Parallel::kFsdpZero3;
  s.job.gradient_as_bucket_view = false;
  for (s.job.gpus = std::max(2, 2 * s.job.gpus); s.job.gpus <= kMostGpus; s.job.gpus *= 2) {
    s.machine.gpu_count = gpus_per_node(s.job.gpus, s.job.nodes);
    const auto program = lower(*s.step, s.job, s.machine);
    if (!program) return 0;
    const MemoryVerdict verdict = judge_memory(*program, s.machine, s.allocator);
    if (word_of(verdict, *program, s.machine, s.allocator, knowledge, s.job) ==
        MemoryVerdictWord::kFits)
      return s.job.gpus;
  }
  return 0;
}

}  // namespace

Result<Remedies> find_remedies(const Scenario& scenario, const Forecast& now,
                               const std::vector<OtherPrecision>& others,
                               const Knowledge& knowledge) {
  Search search(scenario, now, knowledge);
  search.batch();
  search.precision(others);
  if (scenario.step->mode == "train") {
    search.checkpointing();
    search.loss();
    search.optimizer();
    search.gradients();
  }
  search.libraries();
  Remedies remedies = search.take();
  if (!now.memory.fits && scenario.step->mode == "train")
    remedies.fsdp_gpus = gpus_for_fsdp(scenario, knowledge);
  return remedies;
}

Result<Bytes> smallest_device(const Scenario& scenario) {
  const auto program = TRY(lower(*scenario.step, scenario.job, scenario.machine));
  ReplayOptions options = replay_options(scenario.machine, scenario.allocator);
  options.allocator.memory_fraction.reset();  // a share of a device that is being looked for
  return smallest_capacity(program, options) + outside_bytes(program);
}

}  // namespace stoker
