// A recording may claim anything: a diagnosis is made of it all the same, and its shares are
// shares.

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "diagnosis/findings/job_diagnosis.h"
#include "diagnosis/next_run/observed_run.h"
#include "diagnosis/test_damage.h"
#include "diagnosis/test_job.h"

namespace stoker {
namespace {

using test_job::kExtremes;
using test_job::MadeJob;

MadeJob job_with_everything() {
  MadeJob job;
  job.seconds = 6;
  job.loop = {0.3, 0.1, WaitKind::kPoll};
  job.workers = {{0.6, 0.2, WaitKind::kDisk}, {0.5, 0, WaitKind::kPoll}};
  job.epoch = 2;
  job.start_seen = true;
  job.told_waits = 0.3;
  job.told_validation = 0.1;
  job.gpu.busy_percent = 50;
  return job;
}

void expect_sound(const JobTimeline& timeline) {
  const JobDiagnosis d = diagnose_job(timeline);
  EXPECT_TRUE(std::isfinite(d.waits) && d.waits >= 0 && d.waits <= 1.001) << d.waits;
  EXPECT_TRUE(std::isfinite(d.useful) && d.useful >= 0) << d.useful;
  EXPECT_TRUE(std::isfinite(d.batches_per_s));
  for (const JobFinding& finding : d.findings) {
    EXPECT_TRUE(std::isfinite(finding.lost)) << finding.name;
    EXPECT_FALSE(finding.cure.empty()) << finding.name;
  }
  (void)observed_run(timeline, 32, "test");
}

TEST(DamagedNumbers, AnyOneOfThemMayBeAnything) {
  const MadeJob job = job_with_everything();
  constexpr std::uint64_t kNumbers =
      192;  // of a sample, those of the machine and the GPU among them
  for (std::uint64_t which = 0; which < kNumbers; ++which) {
    const std::int64_t value = kExtremes[which % 2];
    SCOPED_TRACE(which);
    int tick = 0;
    expect_sound(job.play([&](Sample& sample) {
      if (++tick == 31) test_job::damage(sample, which, value);
    }));
  }
}

TEST(DamagedNumbers, SoMayMany) {
  const MadeJob job = job_with_everything();
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    expect_sound(job.play([&](Sample& sample) {
      while (random.below(3) == 0)
        test_job::damage(sample, random.below(192), kExtremes[random.below(kExtremes.size())]);
    }));
  }
}

}  // namespace
}  // namespace stoker
