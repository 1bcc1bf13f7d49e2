#include "evidence/fit/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "timing/learned/class_fit.h"
#include "timing/learned/measured_operator.h"
#include "timing/step/coefficient_file.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

constexpr std::size_t kFolds = 5;
/// A step's time is not linear in the logarithms of scales; so often its shares are taken anew.
constexpr int kRounds = 5;
/// A step that spends less than this share of its time in kernels tells of its host.
constexpr double kLeastDeviceShare = 0.5;

/// What a fit must gain in cross-validation, in points and as a share of the error: less is chance.
constexpr double kLeastPoints = 0.1, kLeastGain = 0.03;

using Rows = std::vector<const FitRow*>;
using ClassTimes = std::array<double, kCostClasses>;

/// Microseconds of a row by cost class, and what no class explains: launches, an idle GPU.
struct Prediction {
  ClassTimes by_class{};
  double elsewhere = 0;

  [[nodiscard]] double classes() const {
    double sum = 0;
    for (const double t : by_class) sum += t;
    return sum;
  }
  [[nodiscard]] double total() const { return classes() + elsewhere; }
};

Prediction predict(const FitRow& row, const Coefficients& c, Micros gap) {
  Prediction out;
  const CostModel model(row.gpu, c);
  const auto add = [&](const Kernel& kernel, double times) {
    const KernelCost cost = model.cost_of(kernel);
    const double beyond = beyond_floor(cost, kernel, c).count() * times;
    out.by_class[static_cast<std::size_t>(cost.cost_class)] += beyond;
    return 1e-3 * cost.time.count() * times - beyond;
  };
  if (row.program == nullptr) {
    for (const Kernel& kernel : row.kernels) {
      const double floor = add(kernel, 1);
      if (!row.alone) out.elsewhere += floor;
    }
    if (row.alone) out.elsewhere = gap.count();
    return out;
  }
  row.program->for_each_launch([&](const Kernel& kernel, std::uint32_t, std::int64_t times) {
    (void)add(kernel, static_cast<double>(times));
  });
  const double total = 1e-3 * predict_step(*row.program, row.machine, c).total.count();
  // Overlap may hide kernels; the shares of the rest stay.
  const double classes = out.classes();
  if (classes > total) {
    for (double& t : out.by_class) t *= total / classes;
  } else {
    out.elsewhere = total - classes;
  }
  return out;
}

/// The fit of one GPU.
class GpuFitter {
 public:
  GpuFitter(Rows rows, const Coefficients& before, Micros launch_floor)
      : rows_(std::move(rows)), before_(before) {
    std::vector<TimedKernel> alone;
    for (const FitRow* row : rows_) {
      if (row->alone)
        alone.push_back({CostClass::kGemm, Micros(row->time_us),
                         Micros(predict(*row, before, Micros(0)).total()), 0});
    }
    gap_ = launch_gap(launch_floor, alone);
  }

  Result<GpuFit> run() {
    GpuFit out;
    out.gpu = rows_.front()->gpu.name;
    std::set<std::string> subjects, groups;
    for (const FitRow* row : rows_) subjects.insert(row->subject), groups.insert(row->group);
    if (subjects.size() < 2) {
      return fail(ErrorCode::kBadInput,
                  "has rows of one shape or model only (" + *subjects.begin() +
                      "): without a second nothing tells whether a fit helps",
                  out.gpu);
    }
    std::set<std::string> kept = groups;
    std::map<std::string, FitError> errors;
    for (;;) {
      TRY(cross_validate(kept, errors));
      const auto worse = std::ranges::find_if(kept, [&](const std::string& group) {
        const FitError& e = errors[group];
        return !(e.mean_after < e.mean_before - std::max(kLeastPoints, kLeastGain * e.mean_before));
      });
      if (worse == kept.end()) break;
      errors[*worse].kept = false;
      kept.erase(worse);
      if (kept.empty()) break;
    }
    for (const auto& [group, error] : errors) {
      if (group.empty()) out.all = error;
      else out.groups.push_back(error);
    }
    if (kept.empty()) return out;
    auto patch = TRY(fitted(of_groups(kept, {})));
    out.patch = std::move(patch);
    keep_shipped(of_groups(groups, kept), of_groups(kept, {}), out.patch);
    out.patch.basis = std::to_string(of_groups(kept, {}).size()) +
                      " rows of this GPU's user; the rest: " + before_.basis;
    return out;
  }

 private:
  [[nodiscard]] Rows of_groups(const std::set<std::string>& in,
                               const std::set<std::string>& without) const {
    Rows chosen;
    std::ranges::copy_if(rows_, std::back_inserter(chosen), [&](const FitRow* row) {
      return in.contains(row->group) && !without.contains(row->group);
    });
    return chosen;
  }

  /// The row as logarithms around `at`; nothing when it is mostly launch or host.
  [[nodiscard]] std::optional<ClassRow> linear(const FitRow& row, const Coefficients& at) const {
    const Prediction p = predict(row, at, gap_);
    const double classes = p.classes(), measured = row.time_us - p.elsewhere;
    if (classes <= 0 || measured <= 0 || measured < kLeastDeviceShare * row.time_us)
      return std::nullopt;
    ClassRow out;
    out.log_ratio = std::log(measured / classes);
    out.variance = timing_variance(row.spread * row.time_us / measured);
    const auto most = std::ranges::max_element(p.by_class) - p.by_class.begin();
    out.cost_class = static_cast<CostClass>(most);
    for (std::size_t c = 0; c < kCostClasses; ++c) {
      if (p.by_class[c] <= 0) continue;
      const double share = p.by_class[c] / classes;
      // Back to a ratio with `before`, so that the prior stays where it is.
      out.log_ratio += share * std::log(at.classes[c].scale / before_.classes[c].scale);
      if (static_cast<std::ptrdiff_t>(c) != most)
        out.others.emplace_back(static_cast<CostClass>(c), share);
    }
    return out;
  }

  [[nodiscard]] Result<CoefficientPatch> fitted(const Rows& rows) const {
    Coefficients at = before_;
    CoefficientPatch patch;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<ClassRow> class_rows;
      for (const FitRow* row : rows) {
        if (auto one = linear(*row, at)) class_rows.push_back(std::move(*one));
      }
      if (class_rows.empty()) return CoefficientPatch{};
      auto next = fit_classes(class_rows, before_);
      if (!next) return fail(next.error().code, next.error().message, rows.front()->where);
      patch = std::move(*next);
      at = before_;
      TRY(apply(patch, at));
    }
    return patch;
  }

  /// Each row of the kept groups by a fit without its fold.
  Status cross_validate(const std::set<std::string>& kept,
                        std::map<std::string, FitError>& errors) {
    const Rows rows = of_groups(kept, {});
    std::vector<std::string> subjects;
    for (const FitRow* row : rows) subjects.push_back(row->subject);
    std::ranges::sort(subjects, {}, [](const std::string& s) { return std::pair(fnv1a(s), s); });
    subjects.erase(std::unique(subjects.begin(), subjects.end()), subjects.end());
    std::map<std::string, std::vector<double>> before, after;
    for (std::size_t fold = 0; fold < std::min(kFolds, subjects.size()); ++fold) {
      std::set<std::string> held;
      for (std::size_t i = fold; i < subjects.size(); i += kFolds) held.insert(subjects[i]);
      Rows train, test;
      for (const FitRow* row : rows) (held.contains(row->subject) ? test : train).push_back(row);
      Coefficients c = before_;
      if (!train.empty()) {
        const auto patch = TRY(fitted(train));
        if (auto s = apply(patch, c); !s) return s;
      }
      for (const FitRow* row : test) {
        const auto error = [&](const Coefficients& by) {
          return 100 * std::abs(predict(*row, by, gap_).total() / row->time_us - 1);
        };
        for (const std::string& group : {row->group, std::string()}) {
          before[group].push_back(error(before_));
          after[group].push_back(error(c));
        }
      }
    }
    for (auto& [group, values] : before)
      errors[group] = error_of(group, std::move(values), std::move(after[group]));
    return {};
  }

  static FitError error_of(const std::string& group, std::vector<double> before,
                           std::vector<double> after) {
    FitError e{group, before.size()};
    const auto summary = [](std::vector<double>& values, double& mean, double& median) {
      for (const double v : values) mean += v / static_cast<double>(values.size());
      std::ranges::sort(values);
      median = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
    };
    summary(before, e.mean_before, e.median_before);
    summary(after, e.mean_after, e.median_after);
    return e;
  }

  /// Classes of which only rows tell that did not help stay as they ship.
  void keep_shipped(const Rows& dropped, const Rows& used, CoefficientPatch& patch) const {
    std::set<std::string> from_used, from_dropped;
    const auto classes = [&](const Rows& rows, std::set<std::string>& into) {
      for (const FitRow* row : rows) {
        const Prediction p = predict(*row, before_, gap_);
        for (std::size_t c = 0; c < kCostClasses; ++c) {
          if (p.by_class[c] > 0) into.emplace(name_of(static_cast<CostClass>(c)));
        }
      }
    };
    classes(used, from_used);
    classes(dropped, from_dropped);
    std::erase_if(patch.values, [&](auto& value) {
      const auto dot = value.first.find('.');
      const std::string name = value.first.substr(0, dot), key = value.first.substr(dot);
      if (!from_dropped.contains(name) || from_used.contains(name)) return false;
      if (key != ".spread") return true;
      // What all kernels shared was taken out of the GPU's own band; these classes still have it.
      const auto own = value_of(before_, value.first);
      value.second = std::hypot(own.value_or(0), before_.common_spread);
      return false;
    });
  }

  Rows rows_;
  const Coefficients& before_;
  Micros gap_;
};

}  // namespace

bool FitResult::improved() const {
  return std::ranges::any_of(gpus, [](const GpuFit& fit) { return !fit.patch.values.empty(); });
}

Result<FitResult> fit_coefficients(const FitTable& table, const CoefficientFile& shipped) {
  std::map<std::string, Rows> by_gpu;
  for (const FitRow& row : table.rows) by_gpu[row.gpu.name].push_back(&row);
  FitResult result;
  for (auto& [gpu, rows] : by_gpu) {
    const auto before = TRY(shipped.for_device(rows.front()->gpu));
    const auto floor = table.launch_floor_us.find(gpu);
    GpuFitter fitter(rows, before,
                     Micros(floor == table.launch_floor_us.end() ? 0 : floor->second));
    auto fit = TRY(fitter.run());
    result.gpus.push_back(std::move(fit));
  }
  return result;
}

}  // namespace stoker
