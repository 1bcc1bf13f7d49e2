#pragma once

#include <string>
#include <vector>

#include "diagnosis/findings/job_diagnosis.h"

namespace stoker {

/// Losses below are not reported, as in a watch.
inline constexpr double kWorthTurning = 0.05;

/// Findings of traces as they are gathered: time that is lost before time that gets cheaper, the
/// most first.
class FindingList {
 public:
  /// Time in which a GPU, or a loop without one, got nothing done. The cure is told with what it
  /// brings where the loss is removed whole: " At most +25 % speed."
  void add(std::string name, double lost, std::string evidence, const std::string& cure,
           std::string setting, Confidence confidence);
  /// Time of kernels that a setting makes cheaper, which is not lost whole.
  void add_cheaper(std::string name, double share, std::string evidence, std::string cure,
                   std::string setting, Confidence confidence);
  /// One that another list has told, with the share that it has here.
  void add(JobFinding finding);

  /// The findings in their order; `verdict` ends by the first: " Most is lost by loading in the
  /// main process: 33 % of the time.", or by `healthy`.
  [[nodiscard]] std::vector<JobFinding> finish(const std::string& healthy, std::string& verdict);

 private:
  std::vector<JobFinding> lost_, cheaper_;
};

}  // namespace stoker
