#pragma once

#include <memory>
#include <string>
#include <vector>

#include "study/definition/study.h"
#include "study/trial/trial_files.h"
#include "tune/curve/curve.h"

namespace stoker::tune {

/// Reads a trial's curve from its folder, also while it runs: what stoker.report said, or the
/// pattern's values in its output, whose steps are 1, 2, 3 where nothing is reported beside.
class CurveReader {
 public:
  CurveReader(const study::TrialFiles& files, const study::Metric& metric,
              const Objective& objective);
  ~CurveReader();
  CurveReader(CurveReader&&) noexcept;
  CurveReader(const CurveReader&) = delete;
  CurveReader& operator=(const CurveReader&) = delete;
  CurveReader& operator=(CurveReader&&) = delete;

  /// What there is, with what was added since the last call. Seconds are since the first report.
  const Curve& read();
  /// Names that were reported besides steps and samples, "acc, loss".
  [[nodiscard]] std::string told() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace stoker::tune
