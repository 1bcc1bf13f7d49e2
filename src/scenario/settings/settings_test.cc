#include "scenario/settings/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stoker {
namespace {

TEST(SettingsTest, EachNameMeansOneThingToAVerb) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const SettingRow& setting : all_settings()) {
    for (const std::string& verb : names_in(setting.verbs)) {
      for (const std::string& flag : flags_of(setting))
        EXPECT_TRUE(seen.emplace(verb, flag).second) << verb << " " << flag;
      if (setting.positional) {
        EXPECT_TRUE(seen.emplace(verb, setting.name).second) << verb << " " << setting.name;
      }
    }
  }
}

TEST(SettingsTest, EachIsDescribed) {
  for (const SettingRow& s : all_settings()) {
    const bool bare = s.type == SettingType::kSwitch || s.type == SettingType::kPair;
    EXPECT_FALSE(s.words.empty()) << s.name;
    EXPECT_EQ(s.value.empty(), bare) << s.name;
    EXPECT_FALSE(s.verbs.empty()) << s.name;
  }
}

TEST(SettingsTest, FlagsOfAPairHaveBothHalves) {
  const SettingRow* pin = find_setting("predict", "pin");
  ASSERT_NE(pin, nullptr);
  EXPECT_EQ(flags_of(*pin),
            (std::vector<std::string>{"--pin", "--pin-memory", "--pin-mem",
                                      "--dataloader-pin-memory", "--no-pin", "--no-pin-memory",
                                      "--no-pin-mem", "--no-dataloader-pin-memory"}));
  EXPECT_TRUE(answers_to(*pin, "--pin_memory"));
  EXPECT_TRUE(answers_to(*pin, "--no-pin"));
  EXPECT_FALSE(answers_to(*pin, "--pinned"));
  EXPECT_FALSE(answers_to(*pin, "pin"));
}

TEST(SettingsTest, ValuesAreTakenByTheNamesThatOthersHave) {
  std::string precision;
  const Binding binding{"precision", &precision};
  const auto ours = [&](std::string typed) {
    precision = std::move(typed);
    take_value_aliases("plan", std::span(&binding, 1));
    return check_values("plan", std::span(&binding, 1)) ? precision : "refused";
  };
  EXPECT_EQ(ours("bf16-mixed,32-true"), "amp-bf16,fp32");
  EXPECT_EQ(ours("16-mixed"), "amp-fp16");
  EXPECT_EQ(ours("FP16-mixed"), "amp-fp16");
  EXPECT_EQ(ours("bf16-true"), "bf16");
  EXPECT_EQ(ours("bfloat16,float16,32"), "bf16,fp16,fp32");
  EXPECT_EQ(ours("fp16"), "fp16") << "a name of ours stays";
  EXPECT_EQ(ours("64-true"), "refused");
  EXPECT_EQ(ours(""), "");
  const Binding optimizer{"optimizer", &precision};
  precision = "adamw_torch";
  take_value_aliases("predict", std::span(&optimizer, 1));
  EXPECT_EQ(precision, "adamw");
}

TEST(SettingsTest, SeveralValuesAreForThoseThatTakeSeveral) {
  int tried = 0;
  for (const SettingRow& setting : all_settings()) {
    const auto known = names_in(setting.values);
    if (known.size() < 2) continue;
    for (const std::string& verb : names_in(setting.verbs)) {
      std::string text = known[0] + "," + known[1];
      const Binding binding{setting.name, &text};
      EXPECT_EQ(check_values(verb, std::span(&binding, 1)).has_value(), setting.several)
          << verb << " --" << setting.name;
      ++tried;
    }
  }
  EXPECT_GT(tried, 20);
}

TEST(SettingsTest, EachAliasOfAValueStandsForOne) {
  for (const SettingRow& setting : all_settings()) {
    const auto known = names_in(setting.values);
    for (const std::string& pair : names_in(setting.value_aliases)) {
      EXPECT_EQ(std::count(known.begin(), known.end(), pair.substr(pair.find('=') + 1)), 1)
          << setting.name << " " << pair;
    }
  }
}

TEST(SettingsTest, NamesBelongToVerbs) {
  EXPECT_EQ(find_setting("predict", "max-global-batch"), nullptr);
  EXPECT_EQ(find_setting("plan", "batch-size"), nullptr) << "an alias is no name";
  EXPECT_EQ(find_setting("plan", "batch")->type, SettingType::kWhole);
  EXPECT_EQ(find_setting("predict", "batch")->type, SettingType::kText);
}

TEST(SettingsTest, NumbersOutOfRangeAreRefusedInTheirOwnWords) {
  std::optional<std::int64_t> batch = 0, most = 0;
  std::optional<double> fraction = 0.0, budget = -1.0, momentum = 0.0, step = 2e7;
  const auto refusal = [](const Binding& binding) {
    const Status status = check_values("plan", std::span(&binding, 1));
    return status ? "" : status.error().text();
  };
  EXPECT_EQ(refusal({"batch", &batch}), "--batch: must be between 1 and 16,777,216, not 0");
  EXPECT_EQ(refusal({"max-global-batch", &most}), "--max-global-batch: must be at least 1");
  EXPECT_EQ(refusal({"memory-fraction", &fraction}),
            "--memory-fraction: must be above 0 and at most 1");
  EXPECT_EQ(refusal({"budget", &budget}), "--budget: must be positive");
  EXPECT_EQ(refusal({"step-ms", &step}), "--step-ms: must be above 0 and at most 10,000,000");
  EXPECT_EQ(refusal({"momentum", &momentum}), "") << "0 is within";
  batch = 16777216;
  EXPECT_EQ(refusal({"batch", &batch}), "") << "the end is within";
  batch.reset();
  EXPECT_EQ(refusal({"batch", &batch}), "");
}

TEST(SettingsTest, UnknownNamesAreRefusedWithTheNearest) {
  std::string optimizer = "adamv", precision = "fp32,AMP_BF16", parallel = "zero9";
  const auto refusal = [](const Binding& binding) {
    const Status status = check_values("plan", std::span(&binding, 1));
    return status ? "" : status.error().text();
  };
  EXPECT_EQ(
      refusal({"optimizer", &optimizer}),
      "--optimizer: unknown optimizer \"adamv\"; did you mean adam? (known: sgd, adam, adamw, "
      "rmsprop, adagrad, adadelta, adamax, nadam, radam, adafactor, lion, lbfgs, none, sgd8bit, "
      "adam8bit, adamw8bit, rmsprop8bit, adagrad8bit, lion8bit)");
  EXPECT_EQ(refusal({"precision", &precision}), "") << "letters and digits alone count";
  EXPECT_EQ(
      refusal({"parallel", &parallel}),
      "--parallel: unknown kind of parallelism \"zero9\"; did you mean zero2? (known: ddp, dp, "
      "fsdp-zero2, fsdp-zero3, fsdp, zero2, zero3)");
  parallel = "tensor-parallel";
  EXPECT_TRUE(refusal({"parallel", &parallel})
                  .starts_with("--parallel: \"tensor-parallel\" is not modelled (known: "));
}

TEST(SettingsTest, WhatHasNoUseIsRefusedAsItWasGiven) {
  std::string what = "rows.json", budget, output;
  std::optional<bool> learn;
  bool quick = false, json = true;
  const std::vector<Binding> validate{{"what", &what},   {"budget", &budget}, {"output", &output},
                                      {"learn", &learn}, {"quick", &quick},   {"json", &json}};
  const auto text = [](const Status& status) { return status ? "" : status.error().text(); };
  EXPECT_EQ(text(refuse_given("validate", validate, {"budget", "quick"}, "no")), "");
  EXPECT_EQ(text(refuse_all_but("validate", validate, {"json"}, "no")), "what: no");
  EXPECT_EQ(text(refuse_measuring("validate", validate, "no")), "");
  learn = false;
  EXPECT_EQ(text(refuse_given("validate", validate, {"learn"}, "no")), "--no-learn: no");
  learn = true;
  EXPECT_EQ(text(refuse_all_but("validate", validate, {"what", "json"}, "no")), "--learn: no");
  EXPECT_EQ(text(refuse_measuring("validate", validate, "no")), "");
  output = "mine.json";
  EXPECT_EQ(text(refuse_measuring("validate", validate, "no")), "--output: no");
}

}  // namespace
}  // namespace stoker
