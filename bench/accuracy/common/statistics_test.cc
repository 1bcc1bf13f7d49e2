#include "accuracy/common/statistics.h"

#include <gtest/gtest.h>

namespace stoker::accuracy {
namespace {

TEST(Score, KnownErrors) {
  const std::vector<Pair> pairs{
      {"a", "", 100, 110, {}}, {"a", "", 100, 98, {}}, {"b", "", 200, 200, {}}};
  const Score s = score(pairs);
  EXPECT_EQ(s.rows, 3);
  EXPECT_NEAR(s.mape, 4, 1e-9);
  EXPECT_NEAR(s.mdape, 2, 1e-9);
  EXPECT_NEAR(s.p90, 2 + 0.8 * 8, 1e-9);
  EXPECT_NEAR(s.bias, 0, 1e-9);
  EXPECT_FALSE(s.coverage.has_value());
}

TEST(Score, BandsAreJudgedByCoverageAndWidthTogether) {
  const Band band{0.1, 0.1};
  const Score s = score({{"a", "", 100, 100, band}, {"a", "", 100, 50, band}});
  EXPECT_NEAR(*s.coverage, 50, 1e-9);
  EXPECT_NEAR(*s.width, 15, 1e-9);
  // 20 for the first; 10 + 20 x (100 - 55) for the second.
  EXPECT_NEAR(*s.interval_score, (20 + 10 + 20 * 45) / 2.0, 1e-9);
}

TEST(Score, TheBestConstantWidthIsTheOneThatHoldsTheUsualError) {
  std::vector<Pair> pairs(20, {"a", "", 110, 100, Band{0.5, 0.5}});
  // Wide enough for a ratio of 1.1, and no wider.
  EXPECT_NEAR(*score(pairs).constant_width_score, 100 * (110 - 100 / 1.1) / 110, 1e-6);
  for (Pair& p : pairs) p.band.reset();
  EXPECT_FALSE(score(pairs).constant_width_score.has_value());
}

TEST(BandOf, HoldsNineInTen) {
  std::vector<Pair> pairs;
  for (int i = 0; i <= 100; ++i)
    pairs.push_back({"a", "", 100.0 + i - 40, 100, {}});  // errors -0.40 .. 0.60
  const Band band = band_of(pairs, BandGrowth::kProportional).value().at(100);
  EXPECT_NEAR(band.below, 0.36, 1e-9);
  EXPECT_NEAR(band.above, 0.56, 1e-9);
  EXPECT_FALSE(band_of({}).has_value());
}

TEST(BandOf, FindsWhetherAnErrorIsAShareOrBytes) {
  // Truths up to 10 % above what exceeds a context of 1500; and always within 100 below.
  std::vector<Pair> pairs;
  for (int i = 0; i <= 200; ++i) {
    const double size = 3000 + 150.0 * i;
    const double noise = i % 20 / 19.0;
    pairs.push_back({"a", "", size + noise * 0.1 * (size - 1500), size, {}});
    pairs.push_back({"a", "", size - noise * 100, size, {}});
  }
  const BandForm form = band_of(pairs).value();
  EXPECT_NEAR(form.above.fixed / form.above.share, -1500, 1e-6);
  EXPECT_NEAR(form.below.fixed / form.below.share, 16000, 1e-6);
  EXPECT_NEAR(form.at(20000).above * 20000, 0.1 * 18500, 0.02 * 18500);
  const BandForm constant = band_of(pairs, BandGrowth::kConstant).value();
  EXPECT_NEAR(constant.below.at(3000), constant.below.at(30000), 0.1);
}

TEST(NeedOf, HoldsNinetyTwoInAHundredBeyondTwoWorkspaces) {
  // Needs from 40 % of what exceeds the context below two workspaces above, to 60 % beyond them.
  std::vector<Pair> pairs;
  for (int i = 0; i <= 100; ++i) {
    Pair pair{"a", "", 1, 2500, {}};
    pair.workspace = 50;
    pair.need = 2500 + 2 * 50 + 1000 * (i - 40) / 100.0;
    pairs.push_back(pair);
  }
  pairs.push_back({"a", "", 9000, 2500, {}});  // its need is not known
  const NeedForm need = need_of(pairs).value();
  EXPECT_NEAR(need.at(pairs.front()), 100 + 530, 1e-6);
  Pair other = pairs.front();
  other.predicted = 3500, other.workspace = 0;
  EXPECT_NEAR(need.at(other), 1060, 1e-6);
  EXPECT_FALSE(need_of({pairs.back()}).has_value());
}

TEST(FamilyOf, LettersBeforeTheFirstDigitOrSeparator) {
  EXPECT_EQ(family_of("resnet50d"), "resnet");
  EXPECT_EQ(family_of("vit_base_patch16"), "vit");
  EXPECT_EQ(family_of("ResNet101"), "resnet");
  EXPECT_EQ(family_of("123"), "123");
}

TEST(HashOf, DependsOnTheSeed) {
  EXPECT_EQ(hash_of("resnet50", 1), hash_of("resnet50", 1));
  EXPECT_NE(hash_of("resnet50", 1), hash_of("resnet50", 2));
  EXPECT_NE(hash_of("resnet50", 1), hash_of("resnet51", 1));
}

}  // namespace
}  // namespace stoker::accuracy
