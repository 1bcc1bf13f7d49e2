#include "base/toml_table.h"

#include <gtest/gtest.h>

#include "base/toml_text.h"

namespace stoker {
namespace {

TomlDocument parsed(const std::string& text) {
  auto document = TomlDocument::parse(text, "lab.toml", "docs/reference/study-file.md");
  EXPECT_TRUE(document) << document.error().text();
  return document.value();
}

/// What a reader that knows number, whole, size, name, yes, table [gpu] and list [[gpu.part]] says
/// of a text; empty: it is fine.
std::string refusal(const std::string& text) {
  const auto document = TomlDocument::parse(text, "lab.toml", "docs/reference/study-file.md");
  if (!document) return document.error().text();
  double number = 0;
  int whole = 0;
  Bytes size;
  std::string name;
  bool yes = false;
  TomlTable root = document->root();
  root.number("number", range::kClockMhz, 1, number);
  root.integer("whole", range::kCount, whole);
  root.size("size", range::kMemoryBytes, size);
  root.text("name", name);
  root.boolean("yes", yes);
  static_cast<void>(root.word("word"));
  static_cast<void>(root.words("words"));
  static_cast<void>(root.rows("rows"));
  static_cast<void>(root.tables("list"));
  TomlTable gpu = root.table("gpu");
  static_cast<void>(gpu.tables("part"));
  TomlTable link = gpu.table("link");
  for (TomlTable* table : {&root, &gpu, &link}) {
    if (const auto error = table->finish()) return error->text();
  }
  return "";
}

TEST(TomlTable, ValuesInTheirUnits) {
  const TomlDocument document = parsed(
      "rate = 1.5\nwhole = 4\ntext = \"24G\"\nbytes = 33554432\nname = \"Zürich\"\nyes = true\n"
      "version = 8.6\nspelled = \"8.60\"\nmixed = [1, \"a\", true, 0.1]\none = 7\n"
      "table = [[1, \"a\"], [], [2.5]]\n");
  TomlTable root = document.root();
  double rate = 0;
  root.number("rate", {0, 10, "GB/s"}, 1e9, rate);
  EXPECT_EQ(rate, 1.5e9);
  int whole = 0;
  root.integer("whole", range::kCount, whole);
  EXPECT_EQ(whole, 4);
  Bytes size;
  root.size("text", range::kMemoryBytes, size);
  EXPECT_EQ(size, kGiB * 24);
  root.size("bytes", range::kMemoryBytes, size);
  EXPECT_EQ(size, kMiB * 32);
  std::string name;
  root.text("name", name);
  EXPECT_EQ(name, "Zürich") << "letters beyond ASCII come home";
  bool yes = false;
  root.boolean("yes", yes);
  EXPECT_TRUE(yes);
  EXPECT_EQ(root.word("version"), "8.6");
  EXPECT_EQ(root.word("spelled"), "8.60") << "a text stays as it is written";
  using Words = std::vector<std::string>;
  EXPECT_EQ(root.words("mixed"), (Words{"1", "a", "true", "0.1"}));
  EXPECT_EQ(root.words("one"), Words{"7"});
  EXPECT_EQ(root.rows("table"), (std::vector<Words>{{"1", "a"}, {}, {"2.5"}}));
  EXPECT_FALSE(root.finish()) << "everything was asked for";
}

TEST(TomlTable, WhatIsAbsentLeavesTheTargetAsItIs) {
  const TomlDocument document = parsed("");
  TomlTable none = document.root().table("gpu");
  EXPECT_FALSE(none.present());
  EXPECT_TRUE(none.empty());
  double number = 3;
  none.number("number", range::kClockMhz, 1, number);
  EXPECT_EQ(number, 3);
  EXPECT_EQ(none.word("word"), std::nullopt);
  EXPECT_EQ(none.words("words"), std::nullopt);
  EXPECT_TRUE(none.tables("part").empty() && none.keys().empty() && none.texts().empty());
  EXPECT_EQ(none.as_toml(), "");
  EXPECT_FALSE(none.finish());
}

struct Refused {
  const char* text;
  const char* says;
};

class TomlRefusal : public testing::TestWithParam<Refused> {};

TEST_P(TomlRefusal, SaysWhereAndTheCure) { EXPECT_EQ(refusal(GetParam().text), GetParam().says); }

INSTANTIATE_TEST_SUITE_P(
    Every, TomlRefusal,
    testing::Values(
        Refused{"number = 'x'", "lab.toml:1, number: must be a number, in MHz"},
        Refused{"number = 1e12",
                "lab.toml:1, number: 1e+12 MHz cannot be; possible are 50 MHz to 10000 MHz"},
        Refused{"number = nan",
                "lab.toml:1, number: nan MHz cannot be; possible are 50 MHz to 10000 MHz"},
        Refused{"whole = 1.5", "lab.toml:1, whole: must be a whole number"},
        Refused{"whole = 0",
                "lab.toml:1, whole: 0 GPUs cannot be; possible are 1 GPUs to 1024 GPUs"},
        Refused{"size = 16",
                "lab.toml:1, size: 16 B cannot be; possible are 16.0 MiB to 1024.00 TiB; a bare "
                "number means bytes"},
        Refused{"size = '16'",
                "lab.toml:1, size: 16 B cannot be; possible are 16.0 MiB to 1024.00 TiB"},
        Refused{"size = 1.5",
                "lab.toml:1, size: must be a size: \"24G\", \"24260MiB\" or a whole number of "
                "bytes"},
        Refused{"name = 3", "lab.toml:1, name: must be a text in quotes"},
        Refused{"yes = 'true'", "lab.toml:1, yes: must be true or false"},
        Refused{"word = [1]", "lab.toml:1, word: must be a text or a number"},
        Refused{"words = { a = 1 }",
                "lab.toml:1, words: must be a list of texts, numbers or switches, or one of them"},
        Refused{"words = [[1]]", "lab.toml:1, words: must be a list of texts, numbers or switches"},
        Refused{"rows = [1]",
                "lab.toml:1, rows: must be a list of lists: [[1, \"a\"], [2, \"b\"]]"},
        Refused{"rows = [[[1]]]",
                "lab.toml:1, rows: must be a list of lists: [[1, \"a\"], [2, \"b\"]]"},
        Refused{"list = 3",
                "lab.toml:1, list: must be a list of tables: write [[list]] above each"},
        Refused{"[gpu]\npart = 3",
                "lab.toml:2, [gpu] part: must be a list of tables: write [[gpu.part]] above each"},
        Refused{"gpu = 3", "lab.toml:1, gpu: must be a table: write [gpu] on a line of its own"},
        Refused{"[gpu]\nlink = 3",
                "lab.toml:2, [gpu] link: must be a table: write [gpu.link] on a line of its own"},
        Refused{"naem = 'x'", "lab.toml:1, naem: is not known here; did you mean name?"},
        Refused{
            "zzzzzz = 1",
            "lab.toml:1, zzzzzz: is not known here; docs/reference/study-file.md lists what is"},
        Refused{"[gpu.link]\nx = 1",
                "lab.toml:2, [gpu.link] x: is not known here; docs/reference/study-file.md lists "
                "what is"}));

TEST(TomlTable, TheFirstErrorOfTheFileIsTheOneThatIsSaid) {
  // The reader asks for `number` before `name`; the file has them the other way round.
  EXPECT_EQ(refusal("name = 1\nnumber = 'x'"), "lab.toml:1, name: must be a text in quotes");
  EXPECT_EQ(refusal("oddity = 1\nnumber = 'x'").substr(0, 18), "lab.toml:1, oddity");
}

TEST(TomlDocument, WhatIsNoTomlSaysItsLine) {
  EXPECT_EQ(refusal("number = 100\nname = \"x").substr(0, 49),
            "lab.toml:2: is not TOML, or is cut short: Error w");
  EXPECT_EQ(refusal(std::string("a = 1\nb = \"\0\"", 13)),
            "lab.toml:2: is not TOML: it holds the control character 0; is it a text file? In a "
            "text such a character is written as \\u0000");
  EXPECT_EQ(refusal("\xEF\xBB\xBFname = 'x'"), "") << "a byte-order mark is passed over";
}

TEST(TomlTable, KeysKeepTheOrderOfTheFile) {
  const TomlDocument document = parsed("z = 1\n\"ä\" = 2\na = 3\n[t]\nb = 'x'\nc = 'y'\n");
  TomlTable root = document.root();
  EXPECT_EQ(root.keys(), (std::vector<std::string>{"z", "ä", "a", "t"}));
  EXPECT_TRUE(root.is_table("t") && !root.is_table("z") && !root.is_text("z"));
  EXPECT_EQ(root.place("ä"), "lab.toml:2, ä");
  TomlTable t = root.table("t");
  EXPECT_TRUE(t.stands_after(root) && t.is_text("b"));
  EXPECT_EQ(t.location(), "lab.toml:4");
  EXPECT_EQ(t.texts(), (std::map<std::string, std::string>{{"b", "x"}, {"c", "y"}}));
  EXPECT_EQ(root.other_integers(),
            (std::map<std::string, std::int64_t>{{"a", 3}, {"z", 1}, {"ä", 2}}));
  EXPECT_FALSE(root.finish());
}

TEST(TomlTable, ATableIsWrittenAsItReads) {
  const TomlDocument document = parsed("[gpu]\nname = 'Zürich'\nrate = 0.5\n");
  const TomlDocument again = parsed(document.root().table("gpu").as_toml());
  TomlTable gpu = again.root().table("gpu");
  std::string name;
  gpu.text("name", name);
  EXPECT_EQ(name, "Zürich");
  EXPECT_EQ(gpu.word("rate"), "0.5");
}

/// What is written of a text or a size reads back as the same.
TEST(TomlText, WrittenValuesComeBack) {
  for (const std::string& text :
       {std::string("plain"), std::string("say \"hi\" \\ C:\\new"), std::string("a\tb\nc\x7f"),
        std::string("Z\xC3\xBCrich"), std::string("nul\0here", 8), std::string()}) {
    const TomlDocument document = parsed("t = " + toml_string(text) + "\n");
    std::string again;
    TomlTable root = document.root();
    root.text("t", again);
    EXPECT_EQ(again, text);
  }
  EXPECT_EQ(toml_size(kGiB * 24), "\"24GiB\"");
  EXPECT_EQ(toml_size(kMiB * 24260), "\"24260MiB\"");
  for (const Bytes size : {kGiB * 24, kMiB * 24260, kMiB * 16 + Bytes(1)}) {
    const TomlDocument document = parsed("s = " + toml_size(size) + "\n");
    Bytes again;
    TomlTable root = document.root();
    root.size("s", range::kMemoryBytes, again);
    EXPECT_EQ(again, size);
  }
}

}  // namespace
}  // namespace stoker
