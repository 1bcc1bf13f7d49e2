#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "diagnosis/findings/job_diagnosis.h"
#include "diagnosis/next_run/observed_run.h"
#include "diagnosis/test_damage.h"
#include "diagnosis/test_job.h"

namespace {

using stoker::WaitKind;
using stoker::test_job::MadeJob;

MadeJob made_job(std::uint8_t what) {
  MadeJob job;
  job.seconds = 6;
  job.loop = {0.3, 0.1, WaitKind::kPoll};
  if ((what & 1) == 0) job.workers = {{0.6, 0.2, WaitKind::kDisk}, {0.5, 0, WaitKind::kPoll}};
  if ((what & 2) != 0) job.epoch = 2;
  if ((what & 4) != 0) job.told_waits = 0.3, job.told_validation = 0.1;
  if ((what & 8) != 0) job.gpu.busy_percent = 50;
  if ((what & 16) != 0) job.group_quota = 2;
  job.start_seen = (what & 32) != 0;
  return job;
}

}  // namespace

/// Ten bytes set one number of one sample of a made-up job. Whatever the numbers are, there is a
/// diagnosis, with shares that are shares.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kEntry = 10;
  if (size == 0) return 0;
  struct Damage {
    std::uint8_t which;
    std::int64_t value;
  };
  std::multimap<int, Damage> damages;
  for (std::size_t at = 1; at + kEntry <= size; at += kEntry) {
    Damage d{data[at + 1], 0};
    std::memcpy(&d.value, data + at + 2, sizeof d.value);
    damages.emplace(data[at] % 64, d);
  }
  int tick = 0;
  const stoker::JobTimeline timeline = made_job(data[0]).play([&](stoker::Sample& sample) {
    const auto [from, to] = damages.equal_range(tick++);
    for (auto it = from; it != to; ++it)
      stoker::test_job::damage(sample, it->second.which, it->second.value);
  });
  const stoker::JobDiagnosis diagnosis = stoker::diagnose_job(timeline);
  if (!(diagnosis.waits >= 0 && diagnosis.useful >= 0)) std::abort();
  for (const stoker::JobFinding& finding : diagnosis.findings) {
    if (!std::isfinite(finding.lost) || finding.cure.empty()) std::abort();
  }
  (void)stoker::observed_run(timeline, 32, "fuzz");
  return 0;
}
