#include "device/host/host_speed.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

double speed(std::string_view cpu) {
  const auto known = host_speed(cpu);
  EXPECT_TRUE(known) << cpu;
  return known ? known->speed : 0;
}

TEST(HostSpeed, IsWorkInAClockTimesTheClock) {
  EXPECT_NEAR(speed("EPYC 9575F"), 5.0 / 4.52, 1e-9) << "the measured core's kind at 5 GHz";
  EXPECT_NEAR(speed("Xeon Platinum 8480+"), 1.62 * 3.8 / (1.99 * 4.52), 1e-9);
  EXPECT_GT(speed("EPYC 7763"), speed("EPYC 7542"));
}

TEST(HostSpeed, KnowsNamesAsTheSystemAndPeopleWriteThem) {
  for (const char* same : {"AMD EPYC 7742 64-Core Processor", "EPYC 7742", "amd epyc-7742"})
    EXPECT_DOUBLE_EQ(speed(same), speed("EPYC 7742")) << same;
  EXPECT_DOUBLE_EQ(speed("Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz"), speed("Xeon E5-2698 v4"));
  EXPECT_DOUBLE_EQ(speed("13th Gen Intel(R) Core(TM) i9-13900K"), speed("i9-13900K"));
}

TEST(HostSpeed, TakesAnUnlistedModelByItsGeneration) {
  const auto known = host_speed("AMD EPYC 7352 24-Core Processor");
  ASSERT_TRUE(known);
  EXPECT_NEAR(known->speed, 1.26 * 3.35 / (1.99 * 4.52), 1e-9);
  const auto listed = host_speed("EPYC 7742");
  ASSERT_TRUE(listed);
  EXPECT_GT(known->spread, listed->spread) << "its clock is not known";
}

TEST(HostSpeed, KnowsWorkstationsAndDesktops) {
  const double golden_cove = 1.62 / (1.99 * 4.52);
  EXPECT_NEAR(speed("Intel(R) Xeon(R) w9-3495X"), golden_cove * 4.8, 1e-9);
  EXPECT_NEAR(speed("Intel(R) Xeon(R) w3-2423"), golden_cove * 4.7, 1e-9);
  EXPECT_NEAR(speed("Intel(R) Xeon(R) w3-2525"), golden_cove * 4.8, 1e-9) << "no W-3252";
  EXPECT_NEAR(speed("Intel(R) Xeon(R) W-2245 CPU @ 3.90GHz"), 1.15 * 4.6 / (1.99 * 4.52), 1e-9);
  EXPECT_NEAR(speed("Intel(R) Core(TM) Ultra 9 285K"), 1.77 * 5.5 / (1.99 * 4.52), 1e-9);
  EXPECT_NEAR(speed("Intel(R) Core(TM) i7-4790K CPU @ 4.00GHz"), 3.9 / (1.99 * 4.52), 1e-9);
  EXPECT_NEAR(speed("14th Gen Intel(R) Core(TM) i9-14900K"), golden_cove * 5.8, 1e-9);
}

TEST(HostSpeed, SaysWhichFiguresRowsTold) {
  const auto told = host_speed("Xeon E5-2698 v4");
  ASSERT_TRUE(told);
  EXPECT_NE(told->measured, 1);
  EXPECT_NEAR(told->speed / told->measured, 1.05 * 3.6 / (1.99 * 4.52), 1e-9);
  const auto by_clock = host_speed("EPYC 7763");
  ASSERT_TRUE(by_clock);
  EXPECT_EQ(by_clock->measured, 1);
}

TEST(HostSpeed, RefusesNamesThatSayNothing) {
  for (const char* name : {"", "Xeon", "Intel(R) Xeon(R) CPU @ 2.20GHz", "AMD EPYC", "7742"}) {
    const auto known = host_speed(name);
    ASSERT_FALSE(known) << name;
    EXPECT_NE(known.error().message.find("leave it out"), std::string::npos);
  }
}

TEST(HostSpeed, UsualHostsAreOfTheGpusYears) {
  const auto of = [](Architecture architecture) {
    Gpu gpu;
    gpu.architecture = architecture;
    return usual_host(gpu).speed;
  };
  EXPECT_LT(of(Architecture::kVolta), of(Architecture::kAmpere));
  EXPECT_LT(of(Architecture::kAmpere), of(Architecture::kHopper));
  Gpu game;
  game.name = "RTX3090";
  game.architecture = Architecture::kAmpere;
  EXPECT_GT(usual_host(game).speed, 1.3 * of(Architecture::kAmpere)) << "desktops clock higher";
  EXPECT_GT(usual_host(Gpu{}).spread, host_speed("EPYC 7352")->spread);
}

}  // namespace
}  // namespace stoker
