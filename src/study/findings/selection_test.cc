#include "study/findings/selection.h"

#include <gtest/gtest.h>

#include "study/trial/test_folder.h"

namespace stoker::study {
namespace {

using Words = std::vector<std::string>;

struct Made {
  TestFolder folder;
  Store store;
  Made() : store(make(folder)) {
    add(1, TrialState::kDone, 0.5);
    add(2, TrialState::kDone, 0.7);
    add(3, TrialState::kDone, 0.9);
    add(4, TrialState::kOutOfMemory, std::nullopt);
  }
  static Store make(const TestFolder& folder) {
    Study s;
    s.command = {"true"};
    s.axes = {Axis{{"batch"}, {{"32"}, {"64"}}}, Axis{{"opt"}, {{"sgd"}, {"adam"}}}};
    return std::move(*Store::create(folder.path / "s.db", s, trials_of(s).value()));
  }
  void add(std::int64_t id, TrialState state, std::optional<double> accuracy) {
    TrialResult r;
    r.state = state;
    r.started = 1, r.ended = 2, r.wall_s = static_cast<double>(id);
    if (accuracy) r.metrics["accuracy"] = *accuracy;
    r.resources["peak_bytes"] = 100.0 * static_cast<double>(id);
    EXPECT_TRUE(store.submitted(id, "").has_value());
    EXPECT_TRUE(store.ended(id, r).has_value());
  }
};

std::vector<std::int64_t> ids(const Made& made, const std::string& where) {
  const auto view = select(made.store, {where});
  EXPECT_TRUE(view.has_value()) << view.error().text();
  std::vector<std::int64_t> all;
  for (const TrialRow& row : view->rows) all.push_back(row.id);
  return all;
}

TEST(Selection, TrialsAreChosenByWhatTheyAreAndMeasured) {
  const Made made;
  EXPECT_EQ(ids(made, ""), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(ids(made, "batch > 32"), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(ids(made, "accuracy >= 0.7"), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(ids(made, "state == 'out_of_memory'"), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(ids(made, "opt == 'adam' and peak_bytes < 300 and wall_s > 1"),
            (std::vector<std::int64_t>{2}));
  EXPECT_EQ(select(made.store, {"acuracy > 1"}).error().text(),
            "--where: no trial has \"acuracy\"; did you mean accuracy?");
  EXPECT_EQ(select(made.store, {"", {"los"}}).error().message.substr(0, 18),
            "no trial has \"los\"");
}

TEST(Selection, GroupsHaveMeans) {
  const Made made;
  const auto view = select(made.store, {}).value();
  EXPECT_EQ(view.metrics, Words{"accuracy"});
  const auto groups = grouped(view, {"batch"}).value();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].values, Words{"32"});
  EXPECT_EQ(groups[0].means[0].count, 2);
  EXPECT_DOUBLE_EQ(groups[0].means[0].mean, 0.6);
  EXPECT_NEAR(*groups[0].means[0].deviation, 0.14142135, 1e-8);
  EXPECT_EQ(groups[1].trials, 2);
  EXPECT_EQ(groups[1].done, 1);
  EXPECT_EQ(groups[1].means[0].deviation, std::nullopt);
  EXPECT_EQ(grouped(view, {"bach"}).error().text(),
            "--by: \"bach\" is no axis of this study; did you mean batch?");
}

TEST(Selection, AFinishedRetryTakesThePlaceOfWhatFailed) {
  Made made;
  EXPECT_EQ(made.store.retry(4).value(), 5);
  EXPECT_EQ(ids(made, "batch == 64"), (std::vector<std::int64_t>{3, 4, 5}));
  made.add(5, TrialState::kDone, 0.8);
  EXPECT_EQ(ids(made, "batch == 64"), (std::vector<std::int64_t>{3, 5}));
}

TEST(Selection, ATrialWithAPriceHasACost) {
  const TestFolder folder;
  Study s;
  s.command = {"train"};
  s.axes = {{{"gpus"}, {{"2"}, {"4"}}}};
  s.resources.gpus = "{gpus}";
  s.budget.price_of_gpu_hour = 3;
  auto store = Store::create(folder.path / "study.db", s, trials_of(s).value()).value();
  TrialResult result;
  result.state = TrialState::kDone;
  result.wall_s = 1800;
  for (const std::int64_t id : {1, 2}) {
    ASSERT_TRUE(store.submitted(id, "").has_value());
    ASSERT_TRUE(store.ended(id, result).has_value());
  }
  const StudyView view = select(store, {}).value();
  EXPECT_DOUBLE_EQ(figure_of(view.rows[0], "cost").value(), 3);
  EXPECT_DOUBLE_EQ(figure_of(view.rows[1], "cost").value(), 6);
}

}  // namespace
}  // namespace stoker::study
