#include "input/loader/shared_resource.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace stoker {
namespace {

constexpr Seconds kAlmost = 1e-9_s;  // rounding of both

/// A reference implementation: the work that each job has left, moved on from event to event.
class SharingJobByJob {
 public:
  using Class = SharedResource::Class;
  struct Left {
    std::uint32_t job;
    Seconds work;
    Class served;
  };

  SharingJobByJob(double capacity, double slowdown, double crowding, CpuQuota quota)
      : capacity_(capacity), slowdown_(slowdown), crowding_(crowding), quota_(quota) {}

  void start(Seconds now, std::uint32_t job, Seconds work, Class served) {
    until(now);
    jobs_.push_back({job, work, served});
  }
  void until(Seconds now) {
    while (now_ < now) pass(std::min(now - now_, no_change()));
  }
  /// When the first job ends, and the work that each has left by then.
  [[nodiscard]] Seconds end() const {
    SharingJobByJob copy = *this;
    const auto ended = [](const Left& job) { return job.work <= kAlmost * 1e-3; };
    while (std::ranges::none_of(copy.jobs_, ended))
      copy.pass(std::min(copy.no_change(), copy.soonest()));
    return copy.now_;
  }
  /// Which job that is; several at once are one as good as the other.
  [[nodiscard]] bool may_end(Seconds now, std::uint32_t job) {
    until(now);
    const auto found = std::ranges::find(jobs_, job, &Left::job);
    const bool may = found != jobs_.end() && found->work <= kAlmost;
    if (may) jobs_.erase(found);
    return may;
  }
  [[nodiscard]] Seconds used() const { return used_; }

 private:
  [[nodiscard]] double count(Class served) const {
    return static_cast<double>(std::ranges::count(jobs_, served, &Left::served));
  }
  [[nodiscard]] double in_use() const {
    return std::min(capacity_, static_cast<double>(jobs_.size()));
  }
  [[nodiscard]] bool stands() const {
    return quota_.cores > 0 && now_ < period_end_ && left_ <= 1e-15_s;
  }
  [[nodiscard]] double rate(Class served) const {
    if (stands()) return 0;
    const double all = static_cast<double>(jobs_.size());
    const double loss = 1 + slowdown_ * std::max(0.0, in_use() - 1) +
                        crowding_ * std::clamp(all / capacity_ - 1, 0.0, 1.0);
    const double first = count(Class::kFirst);
    if (served == Class::kFirst) return std::min(1.0, capacity_ / first) / loss;
    return std::min(1.0, std::max(0.0, capacity_ - first) / count(Class::kEven)) / loss;
  }
  /// Time to the first end at the present rates.
  [[nodiscard]] Seconds soonest() const {
    Seconds span = kNeverEnds;
    for (const Left& job : jobs_) {
      if (rate(job.served) > 0) span = std::min(span, job.work / rate(job.served));
    }
    return span;
  }
  /// Time in which the quota changes nothing.
  [[nodiscard]] Seconds no_change() const {
    if (quota_.cores <= 0 || jobs_.empty()) return kNeverEnds;
    if (now_ >= period_end_)
      return std::min(quota_.period, quota_.cores * quota_.period / in_use());
    if (stands()) return period_end_ - now_;
    return std::min(period_end_ - now_, left_ / in_use());
  }
  void pass(Seconds span) {
    if (quota_.cores > 0 && !jobs_.empty() && now_ >= period_end_)
      period_end_ = now_ + quota_.period, left_ = quota_.cores * quota_.period;
    const double even = rate(Class::kEven), first = rate(Class::kFirst);
    const Seconds used = stands() ? 0_s : in_use() * span;
    for (Left& job : jobs_) job.work -= span * (job.served == Class::kFirst ? first : even);
    used_ += used, left_ -= used, now_ += span;
  }

  double capacity_, slowdown_, crowding_;
  CpuQuota quota_;
  Seconds now_, used_, left_, period_end_{-1.0};
  std::vector<Left> jobs_;
};

struct Sharing {
  const char* name;
  double capacity, slowdown, crowding;
  CpuQuota quota;
};

class SharedResourceAgainst : public testing::TestWithParam<Sharing> {};

TEST_P(SharedResourceAgainst, WorkLeftJobByJob) {
  const Sharing& p = GetParam();
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    SharedResource shared(p.capacity, p.slowdown, p.crowding, p.quota);
    SharingJobByJob reference(p.capacity, p.slowdown, p.crowding, p.quota);
    Seconds now;
    std::uint32_t jobs = 0;
    for (int event = 0; event < 60; ++event) {
      const Seconds end = shared.next_end(now);
      const Seconds arrival = now + Seconds(random.uniform(0, 0.05));
      if (shared.jobs() > 0) {
        ASSERT_NEAR(end.count(), reference.end().count(), kAlmost.count()) << "seed " << seed;
      }
      if (shared.jobs() > 0 && (event % 3 == 0 || end <= arrival)) {
        now = end;
        ASSERT_TRUE(reference.may_end(now, shared.finish(now))) << "seed " << seed;
      } else {
        now = arrival;
        const auto served =
            random.below(3) == 0 ? SharedResource::Class::kFirst : SharedResource::Class::kEven;
        const Seconds work(random.uniform(0.001, 0.08));
        shared.start(now, ++jobs, work, served);
        reference.start(now, jobs, work, served);
      }
      ASSERT_NEAR(shared.busy(now).count(), reference.used().count(), kAlmost.count() * 60)
          << "seed " << seed;
    }
  }
}

TEST(SharedResource, WholePeriodsOfAQuotaArePassedAtOnce) {
  // Three jobs at once have half of what they ask for.
  constexpr Seconds kLong(1e9), kBeyondRounding(1e30);
  for (const Seconds work : {kLong, kBeyondRounding}) {
    SharedResource shared(4, 0, 0, {1.5, 0.1_s});
    for (std::uint32_t job = 1; job <= 3; ++job) shared.start(0_s, job, work);
    const Seconds end = shared.next_end(0_s);
    const double rounding = 1e-6 * work.count();
    EXPECT_NEAR(end.count(), 2 * work.count(), rounding);
    EXPECT_NEAR(shared.busy(end).count(), 3 * work.count(), rounding);
    EXPECT_EQ(shared.finish(end), 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sharings, SharedResourceAgainst,
    testing::Values(Sharing{"one_core", 1, 0, 0, {}}, Sharing{"a_part_of_a_core", 0.4, 0, 0, {}},
                    Sharing{"three_cores", 3, 0, 0, {}}, Sharing{"neighbours", 4, 0.08, 0, {}},
                    Sharing{"crowded", 2, 0, 0.2, {}}, Sharing{"both", 2.5, 0.05, 0.1, {}},
                    Sharing{"a_quota", 4, 0, 0, {1.5, 0.1_s}},
                    Sharing{"a_small_quota", 2, 0.05, 0.1, {0.3, 0.05_s}}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace stoker
