#include "operators/measured_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "operators/family.h"

namespace stoker {
namespace {

std::vector<std::string> functions_of(const MeasuredKind& kind) {
  std::istringstream in{std::string(kind.functions)};
  std::vector<std::string> functions;
  for (std::string function; in >> function;) functions.push_back(function);
  return functions;
}

TEST(MeasuredKind, RowsAreComplete) {
  std::set<std::string_view> names;
  for (const MeasuredKind& kind : measured_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name << " twice";
    EXPECT_EQ(measured_kind(kind.name), &kind);
    EXPECT_FALSE(kind.sizes.empty()) << kind.name;
    for (const std::string_view size : {kind.words.read_size, kind.words.written_size}) {
      if (size.empty()) continue;
      EXPECT_NE(std::ranges::find(kind.sizes, size, &MeasuredSize::name), kind.sizes.end()) << size;
    }
  }
  EXPECT_EQ(measured_kind("gem"), nullptr);
}

TEST(MeasuredKind, FunctionsAreOperatorsOfItsClass) {
  for (const MeasuredKind& kind : measured_kinds()) {
    for (const std::string& function : functions_of(kind)) {
      const OperatorFamily& family = family_of("aten::" + function);
      // A mask of random numbers costs what a fill does, and is measured as one.
      EXPECT_TRUE(family.kernel_class == kind.kernel_class || function == "bernoulli_") << function;
    }
  }
}

std::string python_tuple(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + '"';
  return '(' + text + (names.size() == 1 ? ",)" : ")");
}

// Python's calibration of CPUs reads the same table from a file made of it.
TEST(MeasuredKind, PythonsTableIsThisOne) {
  std::string expected;
  for (const MeasuredKind& kind : measured_kinds()) {
    if (kind.functions.empty()) continue;
    expected +=
        "    \"" + std::string(kind.name) + "\": " + python_tuple(functions_of(kind)) + ",\n";
  }
  std::ifstream file(STOKER_SOURCE_DIR "/python/stoker/calibrate/kinds.py");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str(), start = "KINDS = {\n";
  const std::size_t begin = all.find(start);
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(all.substr(begin + start.size()), expected + "}\n");
}

}  // namespace
}  // namespace stoker
