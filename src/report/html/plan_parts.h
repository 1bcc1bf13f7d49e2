#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/plan_picture.h"
#include "report/html/page.h"
#include "report/model/report.h"

/// Internal to src/report/html: settings around plans, of one kind of GPU or of several.
namespace stoker::page {

/// What settings are priced by: an epoch of unknown size has neither.
enum class Price { kMoney, kGpuHours, kNone };
[[nodiscard]] Price price_of(const PlanPicture& picture);
[[nodiscard]] std::string cost_words(Price price, const ReportContext& context);

/// The title over time_and_money, for GPUs.
[[nodiscard]] std::string time_against(Price price);

/// A forecast for each batch, number of GPUs and precision.
[[nodiscard]] Json settings_map(const PlanPicture& picture, Price price,
                                const ReportContext& context);

/// Every setting that runs, by time and by what it costs. With several kinds of GPU (named; one
/// alone has no name) those that no other of their kind beats.
[[nodiscard]] Json time_and_money(
    const std::vector<std::pair<std::string, const PlanPicture*>>& pictures, Price price,
    const ReportContext& context);

}  // namespace stoker::page
