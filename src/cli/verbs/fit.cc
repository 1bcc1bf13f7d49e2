#include "evidence/fit/fit.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "base/files.h"
#include "cli/outside/output.h"
#include "cli/outside/scenario_tools.h"
#include "cli/verbs/verbs.h"
#include "device/host/this_host.h"
#include "device/resolve/resolve.h"
#include "scenario/sources/model_source.h"

namespace stoker::cli {
namespace {

constexpr Bytes kLargestTable{64LL << 20};

struct FitArguments {
  std::string rows, output, gpu;
  bool json = false;
};

Result<Gpu> find(const std::string& typed) {
  const auto machine = TRY(resolve_machine(typed, "", Host{}));
  if (const Gpu* gpu = machine.device.gpu()) return *gpu;
  return fail(ErrorCode::kUsage,
              "is a CPU, and fits are of GPUs: `stoker calibrate --device cpu` measures a CPU",
              typed);
}

/// Each model is read once.
StepLoader loader() {
  auto known =
      std::make_shared<std::map<std::pair<std::string, Precision>, std::shared_ptr<const Step>>>();
  return [known](const std::string& model,
                 Precision precision) -> Result<std::shared_ptr<const Step>> {
    auto& step = (*known)[{model, precision}];
    if (step != nullptr) return step;
    const auto loaded =
        TRY(load_model(model, {precision}, ModelDevice::kGpu, {}, scenario_tools()));
    step = loaded.variants.front().step;
    return step;
  };
}

Result<int> run_fit(const FitArguments& o) {
  std::error_code ignored;
  if (!o.rows.ends_with(".csv") && !std::filesystem::exists(o.rows, ignored))
    return fail(ErrorCode::kUsage,
                "is no file of measured rows; whether a job fits a GPU says stoker predict MODEL "
                "--gpu GPU --batch N",
                o.rows);
  const auto text = TRY(read_file(o.rows, kLargestTable));
  const auto table = TRY(read_fit_rows(text, o.rows, o.gpu, find, loader()));
  const auto shipped = TRY(CoefficientFile::load_shipped());
  const auto result = fit_coefficients(table, shipped);
  if (!result) return tl::unexpected(result.error());
  const std::string file =
      fit_json(*result, std::filesystem::path(o.rows).filename().string() + ", " +
                            std::to_string(table.rows.size()) + " rows");
  print((o.json ? file : fit_text(*result)));
  if (!result->improved()) {
    return fail(
        ErrorCode::kAnswerIsNo,
        "the shipped coefficients forecast these rows as well as fitted ones do; nothing is "
        "written");
  }
  if (o.output.empty()) {
    if (!o.json) std::puts("Nothing is written; give a file with -o to use the fit");
    return 0;
  }
  TRY(write_file(o.output, file));
  if (!o.json) {
    std::printf("Written to %s; use it with --coefficients %s\n", o.output.c_str(),
                o.output.c_str());
  }
  return 0;
}

}  // namespace

Command fit_command() {
  auto o = std::make_shared<FitArguments>();
  return {"fit",
          "fit time coefficients to measured rows of yours",
          "Example: stoker fit rows.csv --gpu rtx-3090 -o mine.json\n"
          "         stoker predict resnet50 --gpu rtx-3090 --coefficients mine.json",
          {{"rows", &o->rows}, {"output", &o->output}, {"gpu", &o->gpu}, {"json", &o->json}},
          [o] { return run_fit(*o); }};
}

}  // namespace stoker::cli
