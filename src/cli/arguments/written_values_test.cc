#include "cli/arguments/written_values.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

TEST(WrittenValuesTest, MoneyIsReadWithItsSign) {
  EXPECT_EQ(plain_money("$0.35"), "0.35");
  EXPECT_EQ(plain_money("$0.35/h"), "0.35");
  EXPECT_EQ(plain_money("0.35/hr"), "0.35");
  EXPECT_EQ(plain_money("0.35 USD/hour"), "0.35");
  EXPECT_EQ(plain_money("US$ 2.10 per hour"), "2.10");
  EXPECT_EQ(plain_money("12 dollars"), "12");
  EXPECT_EQ(plain_money("5$"), "5");
}

TEST(WrittenValuesTest, OtherMoneyStaysAsItIs) {
  for (const char* text : {"", "$", "cheap", "0.35/day", "35c", "EUR 1", "/h", "1.2.3", "-"})
    EXPECT_EQ(plain_money(text), text);
}

TEST(WrittenValuesTest, UnitsOfASettingAreRead) {
  const SettingRow* step = find_setting("plan", "step-ms");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(plain_value(*step, "50ms"), "50");
  EXPECT_EQ(plain_value(*step, "0.05 s"), "50");
  EXPECT_EQ(plain_value(*step, "50"), "50");
  EXPECT_EQ(plain_value(*step, "50us"), "50us") << "for the parser to refuse";
  const SettingRow* side = find_setting("plan", "image-size");
  ASSERT_NE(side, nullptr);
  EXPECT_EQ(plain_value(*side, "224x224"), "224");
  EXPECT_EQ(plain_value(*side, "224px"), "224");
  EXPECT_EQ(plain_value(*side, "640x480"), "640x480") << "no square";
  const SettingRow* gpus = find_setting("plan", "gpus");
  ASSERT_NE(gpus, nullptr);
  EXPECT_EQ(plain_value(*gpus, "1-8"), "1..8");
  EXPECT_EQ(plain_value(*gpus, "1 to 8"), "1..8");
  for (const char* text : {"-1", "1-", "1..8", "1,2", "a-b", "1-8x"})
    EXPECT_EQ(plain_value(*gpus, text), text);
  const SettingRow* budget = find_setting("plan", "budget");
  ASSERT_NE(budget, nullptr);
  EXPECT_EQ(plain_value(*budget, "$50"), "50");
  EXPECT_EQ(plain_value(*find_setting("plan", "batch"), "$50"), "$50") << "no money";
}

TEST(WrittenValuesTest, ANumberIsOfferedForWhatMayMeanSeveral) {
  EXPECT_EQ(likely_number("4k"), "4096");
  EXPECT_EQ(likely_number("0.5K"), "512");
  EXPECT_EQ(likely_number("1_024"), "1024");
  EXPECT_EQ(likely_number("1,024"), "1024");
  EXPECT_EQ(likely_number("512 tokens"), "512");
  EXPECT_EQ(likely_number("2^6"), "");
  EXPECT_EQ(likely_number("64x4"), "") << "it is a product";
  EXPECT_EQ(likely_number("max"), "");
  EXPECT_EQ(likely_number("64"), "") << "as it stands";
  EXPECT_EQ(likely_words("2k"), "; write 2048");
  EXPECT_EQ(likely_words("two"), "");
}

}  // namespace
}  // namespace stoker::cli
