#include "report/html/page.h"

#include <gtest/gtest.h>

namespace stoker::page {
namespace {

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

TEST(Page, TextOfTheDataNeverEndsItsElementNorBeginsAnother) {
  const std::string evil = "</script><script>alert(1)</script><!-- &amp; @DATA@";
  Page page("plan", evil, evil);
  page.headline(Verdict::kGood, evil, {evil});
  page.section(evil, evil, {sentences({evil}), table({{evil}}, {{{evil, {}}}})});
  page.footer(evil, {evil});
  page.text(evil);
  const std::string html = page.html("0");
  EXPECT_EQ(count(html, "<script>"), 1U);
  EXPECT_EQ(count(html, "</script>"), 2U);
  EXPECT_EQ(count(html, "alert(1)</script>"), 0U);
  EXPECT_EQ(count(html, "<!--"), 0U);
  EXPECT_NE(html.find("<title>&lt;/script&gt;"), std::string::npos);
}

TEST(Page, OnlyItsOwnScriptAndStyleMayRun) {
  Page page("plan", "resnet50", "");
  const std::string html = page.html("0");
  EXPECT_NE(html.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(count(html, "unsafe"), 0U);
  EXPECT_EQ(count(html, "@POLICY@") + count(html, "@STYLE@") + count(html, "@SCRIPT@"), 0U);
  EXPECT_LT(html.size(), 200'000U);
}

TEST(Page, FiguresCarryTheTextBandAndBasisThatTheyAreShownAs) {
  const Json speed = shown({1234, 1000, 1500, "rows"}, "img/s").json();
  EXPECT_EQ(speed.dump(), R"({"text":"1,230 img/s","v":1234.0,"band":"1,000 to 1,500 img/s",)"
                          R"("lo":1000.0,"hi":1500.0,"basis":"rows"})");
  EXPECT_EQ(plain("7", 7).json().dump(), R"({"text":"7","v":7.0})");
  EXPECT_EQ(shown_money({0.0061, 0.0061, 0.0061, ""}, "$").text, "$0.0061");
  EXPECT_EQ(shown_money({1240.4, 1240.4, 1240.4, ""}, "EUR ").text, "EUR 1,240");
  EXPECT_EQ(shown_energy({0.0065, 0.0036, 0.011, ""}).band, "3.60 Wh to 11.0 Wh");
}

TEST(Page, ColumnsThatNoRowKnowsAreLeftOut) {
  Json known = table({{"trial"}, {"after 1 s"}, {"why", false}, {"best"}},
                     {{{"", plain("1", 1)}, {"-", {}}, {"", {}}, {"-", {}}},
                      {{"", plain("2", 2)}, {"-", {}}, {"", {}}, {"", plain("7", 7)}}});
  EXPECT_EQ(known["columns"].dump(),
            R"([{"name":"trial","numeric":true},{"name":"best","numeric":true}])");
  EXPECT_EQ(known["rows"].dump(),
            R"([[{"text":"1","v":1.0},"-"],[{"text":"2","v":2.0},{"text":"7","v":7.0}]])");
}

TEST(Page, WhatIsEmptyIsLeftOut) {
  Page page("plan", "m", "");
  page.section("nothing to see", "", {Json(), bars({}, "ms"), scatter({})});
  page.footer("Excluded", {});
  const std::string html = page.html("0");
  EXPECT_EQ(count(html, "nothing to see"), 0U);
  EXPECT_EQ(count(html, "Excluded"), 0U);
}

}  // namespace
}  // namespace stoker::page
