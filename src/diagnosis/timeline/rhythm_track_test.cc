#include "diagnosis/timeline/rhythm_track.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stoker {
namespace {

constexpr double kGap = 0.025;  // four looks at ten samples a second

/// A thread that is on a core for a part of each step and sleeps for the rest.
struct MadeSteps {
  double period = 0.3;
  double busy = 0.4;  ///< share of the step
  double jitter = 0;  ///< standard deviation of a step, relative
  double drift = 0;   ///< the last step is longer than the first by this part
  double seconds = 60;
  bool at_random = false;   ///< busy and asleep for times that follow no pattern
  double pauses_every = 0;  ///< seconds; it then sleeps for two

  [[nodiscard]] std::optional<Rhythm> rhythm() const {
    std::mt19937 random(7);
    std::normal_distribution<double> normal(0, 1);
    std::exponential_distribution<double> exponential(1);
    std::uniform_real_distribution<double> uniform(-0.4, 0.4);
    RhythmTrack track;
    double at = 0, counter = 0, next = 0, paused = 0;
    const auto read_until = [&](double until, double rate) {
      while (next <= until) {
        track.add(next, counter + rate * (next - at), kGap);
        // Looks lie unevenly, so that what is faster than they are does not look slow.
        next = kGap * (std::floor(next / kGap + 0.5) + 1 + uniform(random));
      }
      counter += rate * (until - at);
      at = until;
    };
    while (at < seconds) {
      double whole = period * (1 + drift * at / seconds) * (1 + jitter * normal(random));
      whole = std::max(whole, 0.2 * period);
      const double works = at_random ? busy * period * exponential(random) : busy * whole;
      const double sleeps = at_random ? (1 - busy) * period * exponential(random) : whole - works;
      read_until(at + works, 1);
      read_until(at + sleeps, 0);
      if (pauses_every > 0 && at - paused > pauses_every) read_until(at + 2, 0), paused = at;
    }
    return track.rhythm();
  }
};

TEST(RhythmTrackTest, FindsSteadySteps) {
  for (const double period : {0.12, 0.2, 0.33, 0.5, 0.9, 1.4}) {
    const auto rhythm = MadeSteps{.period = period}.rhythm();
    ASSERT_TRUE(rhythm) << period;
    EXPECT_LE(rhythm->low, period);
    EXPECT_GE(rhythm->high, period);
    EXPECT_NEAR(rhythm->period, period, 0.03 * period);
    EXPECT_LT(rhythm->high / rhythm->low, 1.2) << period;
    EXPECT_GT(rhythm->share, 0.9);
  }
}

TEST(RhythmTrackTest, FindsSlowStepsInALongWatch) {
  for (const double period : {3.0, 11.0}) {
    const auto rhythm = MadeSteps{.period = period, .jitter = 0.02, .seconds = 900}.rhythm();
    ASSERT_TRUE(rhythm) << period;
    EXPECT_NEAR(rhythm->period, period, 0.05 * period);
  }
}

TEST(RhythmTrackTest, StepsMayVary) {
  for (const double jitter : {0.02, 0.05, 0.1}) {
    const auto rhythm = MadeSteps{.period = 0.4, .jitter = jitter}.rhythm();
    ASSERT_TRUE(rhythm) << jitter;
    EXPECT_LE(rhythm->low, 0.4);
    EXPECT_GE(rhythm->high, 0.4);
    EXPECT_NEAR(rhythm->period, 0.4, 0.04);
  }
}

TEST(RhythmTrackTest, DriftWidensTheBand) {
  const auto rhythm = MadeSteps{.period = 0.4, .drift = 0.15}.rhythm();
  ASSERT_TRUE(rhythm);
  EXPECT_LT(rhythm->low, 0.415);
  EXPECT_GT(rhythm->high, 0.445);
  EXPECT_FALSE((MadeSteps{.period = 0.4, .drift = 3, .seconds = 120}.rhythm()))
      << "steps that become four times as long have no one rhythm";
}

TEST(RhythmTrackTest, PausesAreNoRhythmOfTheirOwn) {
  const auto rhythm = MadeSteps{.period = 0.3, .jitter = 0.02, .pauses_every = 20}.rhythm();
  ASSERT_TRUE(rhythm);
  EXPECT_NEAR(rhythm->period, 0.3, 0.015);
}

TEST(RhythmTrackTest, SaysNothingWithoutARhythm) {
  for (const double period : {0.05, 0.1, 0.3, 1.0})
    EXPECT_FALSE((MadeSteps{.period = period, .seconds = 300, .at_random = true}.rhythm()))
        << period;
  EXPECT_FALSE((MadeSteps{.busy = 1}.rhythm())) << "on a core all the time";
  EXPECT_FALSE((MadeSteps{.seconds = 5}.rhythm())) << "too short a watch";
}

TEST(RhythmTrackTest, GapsThatNoMomentsCanTellApartAreNone) {
  RhythmTrack track;
  constexpr double kLate = 9e9;  // seconds: the next number that a double can hold is 2 us away
  for (int i = 0; i < 3; ++i) track.add(kLate + i, i, 1e-9);
  EXPECT_FALSE(track.rhythm());
}

/// Steps shorter than the looks' distance would look like longer ones if looks were even.
TEST(RhythmTrackTest, ShortStepsDoNotLookLikeLongOnes) {
  for (const double period : {0.003, 0.011, 0.017, 0.0235, 0.027, 0.031, 0.037, 0.047, 0.052, 0.06})
    for (const double jitter : {0.0, 0.01, 0.05}) {
      const auto rhythm = MadeSteps{.period = period, .jitter = jitter, .seconds = 120}.rhythm();
      EXPECT_FALSE(rhythm) << period << " with " << jitter << " shows as "
                           << (rhythm ? rhythm->period : 0);
    }
}

}  // namespace
}  // namespace stoker
