#include "base/setting.h"

#include <gtest/gtest.h>

#include <set>

namespace stoker {
namespace {

TEST(Setting, EachHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i < static_cast<int>(Setting::kCount); ++i)
    names.insert(name_of(static_cast<Setting>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Setting::kCount));
  EXPECT_EQ(name_of(Setting::kModel), "model");
  EXPECT_EQ(name_of(Setting::kGpusPerNode), "gpus-per-node");
  EXPECT_EQ(name_of(Setting::kLearn), "learn");
}

TEST(Setting, IsSpelledAsAFlagOfTheSameLength) {
  const std::string sentence = "needs " + mark(Setting::kPrice) + " and " +
                               mark(Setting::kGpusPerNode) + ", or " + mark_off(Setting::kPin);
  const std::string spelled = with_flags(sentence);
  EXPECT_EQ(spelled, "needs --price and --gpus-per-node, or --no-pin");
  EXPECT_EQ(spelled.size(), sentence.size());
}

TEST(Setting, DoubledBracesAreOfACommand) {
  EXPECT_EQ(with_flags("--lr {{batch}} {{anything}} {price}"), "--lr {batch} {anything} --price");
}

TEST(Setting, OtherBracesStayAsTheyAre) {
  EXPECT_EQ(with_flags("{{price} {unknown} {\"price\": 1} {"),
            "{--price {unknown} {\"price\": 1} {");
  EXPECT_EQ(with_flags(""), "");
  EXPECT_EQ(with_flags("{}"), "{}");
}

}  // namespace
}  // namespace stoker
