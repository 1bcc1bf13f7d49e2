#include "cli/arguments/settings_page.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "cli/verbs/verbs.h"

namespace stoker::cli {
namespace {

TEST(SettingsPageTest, TheShippedPageIsWhatIsPrinted) {
  const auto shipped = read_file(STOKER_SOURCE_DIR "/docs/reference/settings.md", Bytes(1 << 20));
  ASSERT_TRUE(shipped);
  EXPECT_EQ(*shipped, settings_page(all_verbs()))
      << "stoker settings --markdown > docs/reference/settings.md";
}

TEST(SettingsPageTest, ARowHasNameMeaningRangeDefaultAndAliases) {
  const std::string page = settings_page(all_verbs());
  EXPECT_NE(
      page.find("| `--workers N` | predict | DataLoader workers per GPU (0 to 1,024) | cores / "
                "GPUs | `--num-workers`, `--dataloader-num-workers` |\n"),
      std::string::npos);
  EXPECT_NE(page.find("| `--memory-fraction X` |  | as torch.cuda.set_per_process_memory_fraction "
                      "(above 0 up to 1); GPU only |  |  |\n"),
            std::string::npos);
}

TEST(SettingsPageTest, ASettingThatAnEarlierVerbSharesIsNamedAndNotDescribedAgain) {
  const std::string page = settings_page(all_verbs());
  const std::size_t tune = page.find("\n## tune\n");
  const std::size_t row = page.find("| `--grace TIME` |");
  ASSERT_NE(row, std::string::npos);
  EXPECT_LT(page.find("\n## sweep\n"), row);
  EXPECT_LT(row, tune);
  EXPECT_EQ(page.find("| `--grace TIME` |", row + 1), std::string::npos);
  const std::size_t shared = page.find("As of [sweep](#sweep): ", tune);
  ASSERT_NE(shared, std::string::npos);
  EXPECT_LT(page.find("`--grace TIME`", shared), page.find('\n', shared));
}

TEST(SettingsPageTest, TheListNamesVerbs) {
  EXPECT_NE(settings_list().find("  --learn                   validate: correct the machine file"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker::cli
