#include "scenario/sources/capture_words.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(CaptureWords, AgesAreInTheLargestUnit) {
  EXPECT_EQ(ago(0), "just now");
  EXPECT_EQ(ago(59), "just now");
  EXPECT_EQ(ago(60), "1 minute ago");
  EXPECT_EQ(ago(7200), "2 hours ago");
  EXPECT_EQ(ago(86400 * 30), "30 days ago");
  EXPECT_EQ(ago(-5), "just now") << "clocks of two computers";
}

TEST(CaptureWords, NameTheSoftwareAndTheAge) {
  Provenance p;
  p.torch = "2.14.1+cu130";
  p.libraries = {{"timm", "1.0.9"}, {"torchvision", "0.29.1+cu130"}};
  p.date = "2026-11-28";
  EXPECT_EQ(
      capture_words(p, 0),
      "the model as captured by PyTorch 2.14.1, timm 1.0.9, torchvision 0.29.1 of 2026-11-28");
  p.captured_at = 1000;
  EXPECT_EQ(capture_words(p, 1000 + 3 * 3600),
            "the model as captured by PyTorch 2.14.1, timm 1.0.9, torchvision 0.29.1, 3 hours ago");
}

}  // namespace
}  // namespace stoker
