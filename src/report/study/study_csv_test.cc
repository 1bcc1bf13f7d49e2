#include <gtest/gtest.h>

#include "base/csv.h"
#include "report/study/figures.h"
#include "report/study/study_report.h"

namespace stoker {
namespace {

using study::StudyView;
using study::TrialRow;
using study::TrialState;

StudyView view_of(const std::vector<TrialRow>& rows) {
  StudyView view;
  view.axes = {"optimizer, kind", "lr"};
  view.metrics = {"accuracy"};
  view.rows = rows;
  for (const TrialRow& row : rows) ++view.counts[row.state];
  return view;
}

TrialRow row_of(std::int64_t id, std::vector<std::string> values) {
  TrialRow row;
  row.id = id;
  row.trial.values = std::move(values);
  row.state = TrialState::kDone;
  return row;
}

TEST(StudyCsv, AnyTextComesBackFromTheFile) {
  TrialRow row = row_of(3, {"say \"hi\", twice\nand again", "#0.1"});
  row.trial.repetition = 1;
  row.trial.seed = 42;
  row.metrics = {{"accuracy", 0.1}};
  row.resources = {{"peak_bytes", 1e12}};
  row.forecast = {{"samples_per_s", 390}};
  row.wall_s = 1.5;
  row.exit_code = 0;
  row.reason = "ended,\r\nwell";
  const auto rows = parse_csv(study_csv(view_of({row})), "study.csv");
  ASSERT_TRUE(rows) << rows.error().text();
  ASSERT_EQ(rows->size(), 1U);
  const CsvRow& read = rows->front();
  EXPECT_EQ(read["trial"], "3");
  EXPECT_EQ(read["optimizer, kind"], row.trial.values[0]);
  EXPECT_EQ(read["lr"], "#0.1");
  EXPECT_EQ(read["repeat"], "1");
  EXPECT_EQ(read["seed"], "42");
  EXPECT_EQ(read["state"], "done");
  EXPECT_EQ(read["exit_code"], "0");
  EXPECT_EQ(read["signal"], "");
  EXPECT_EQ(read["wall_s"], "1.5");
  EXPECT_EQ(read["accuracy"], "0.1");
  EXPECT_EQ(read["peak_bytes"], "1e+12");
  EXPECT_EQ(read["forecast_samples_per_s"], "390");
  EXPECT_EQ(read["reason"], row.reason);
}

TEST(StudyCsv, ColumnsThatOneTrialHasAreEmptyInOthers) {
  TrialRow one = row_of(1, {"sgd", "1"}), two = row_of(2, {"adam", "2"});
  one.resources = {{"gpu_watts", 250}};
  two.resources = {{"cpu_cores", 0.5}};
  const auto rows = parse_csv(study_csv(view_of({one, two})), "study.csv");
  ASSERT_TRUE(rows);
  EXPECT_EQ((*rows)[0]["gpu_watts"], "250");
  EXPECT_EQ((*rows)[0]["cpu_cores"], "");
  EXPECT_EQ((*rows)[1]["gpu_watts"], "");
  EXPECT_EQ((*rows)[1]["cpu_cores"], "0.5");
}

TEST(StudyJson, NumbersOfAnAxisAreNumbersAndTextsTexts) {
  StudyView view = view_of({row_of(1, {"64", "1e-3"}), row_of(2, {"1e300", "nadam"}),
                            row_of(3, {"9007199254740993", "-0.5"})});
  view.axes = {"batch", "lr"};
  const std::string text = study_json(view, "test");
  EXPECT_NE(text.find("\"batch\": 64"), std::string::npos) << text;
  EXPECT_NE(text.find("\"lr\": 0.001"), std::string::npos);
  EXPECT_NE(text.find("\"batch\": 1e+300"), std::string::npos);
  EXPECT_NE(text.find("\"lr\": \"nadam\""), std::string::npos);
  EXPECT_NE(text.find("\"lr\": -0.5"), std::string::npos);
}

TEST(StudyText, EqualReasonsStandOnceWithTheirTrials) {
  std::vector<TrialRow> rows;
  for (std::int64_t id = 1; id <= 11; ++id) {
    rows.push_back(row_of(id, {"sgd", "1"}));
    rows.back().state = id == 11 ? TrialState::kFailed : TrialState::kOutOfMemory;
    rows.back().reason = id == 11 ? "KeyError: 'lr'" : "CUDA out of memory";
  }
  const std::string text = study_text(view_of(rows));
  EXPECT_NE(text.find("11 trials: 1 failed, 10 out of memory"), std::string::npos) << text;
  EXPECT_NE(text.find("  trials 1, 2, 3, 4, 5, 6, 7, 8 and 2 more: out_of_memory, CUDA out of "
                      "memory\n"),
            std::string::npos);
  EXPECT_NE(text.find("  trial 11: failed, KeyError: 'lr'\n"), std::string::npos);
}

TEST(StudyText, AfterSixtyRowsTheOthersAreCounted) {
  std::vector<TrialRow> rows;
  for (std::int64_t id = 1; id <= 1'260; ++id) rows.push_back(row_of(id, {"sgd", "1"}));
  const std::string text = study_text(view_of(rows));
  EXPECT_NE(text.find("  60  sgd"), std::string::npos);
  EXPECT_EQ(text.find("  61  sgd"), std::string::npos);
  EXPECT_NE(text.find("  ... and 1,200 more: --where chooses, --csv has all\n"), std::string::npos);
}

TEST(StudyFigures, UnitsFollowNames) {
  EXPECT_EQ(named_figure("peak_bytes", 3.5 * 1024 * 1024), "3.5 MiB");
  EXPECT_EQ(named_figure("peak_bytes", 1e300), "1e+300");
  EXPECT_EQ(named_figure("wall_s", 0.0123), "12.3 ms");
  EXPECT_EQ(named_figure("accuracy", 0.912345), "0.9123");
  EXPECT_EQ(named_figure("samples_per_s", 1.293e6), "1293000");
  EXPECT_EQ(named_figure("samples_per_s", 12345.6), "12,346");
  EXPECT_EQ(named_figure("loss", 1.25e-5), "1.25e-05");
  EXPECT_EQ(named_figure("loss", std::nullopt), "-");
}

TEST(StudyFigures, ACutKeepsCharactersWhole) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 4), "abcd...");
  EXPECT_EQ(printable("ab\xC3\xA4"
                      "c",
                      3),
            "ab...");  // an a umlaut of two bytes begins at the third
  EXPECT_EQ(printable("ab\xC3\xA4"
                      "c",
                      4),
            "ab\xC3\xA4...");
  EXPECT_EQ(printable("\xF0\x9F\x98\x80!", 3), "...");
}

}  // namespace
}  // namespace stoker
