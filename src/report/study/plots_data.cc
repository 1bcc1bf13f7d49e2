#include <algorithm>
#include <set>

#include "report/json/answer.h"
#include "report/study/findings_data.h"
#include "report/study/study_report.h"

namespace stoker {
namespace {

using json::Value;
using study::AxisScaling;
using study::StudyView;

constexpr int kLineParts = 100;
constexpr double kBeyond = 2;                 // lines go to so many times the largest number tried
constexpr std::size_t kMostPoints = 200'000;  // of all curves of one metric

Value line_of(const AxisScaling& s) {
  Value line = Value::array();
  const double low = s.points.front().first, high = kBeyond * s.points.back().first;
  const auto add = [&](double n) { line.push_back(Value::array({n, s.at(n)})); };
  for (int i = 0; i <= kLineParts; ++i) add(low + (high - low) * i / kLineParts);
  return line;
}

/// Each trial's points as [seconds, value], thinned evenly; the last one stays.
Value curves_of(const StudyView& view, const study::Curves& curves) {
  Value all = Value::array();
  std::size_t points = 0;
  for (const auto& [trial, curve] : curves) points += curve.size();
  const std::size_t stride = points / kMostPoints + 1;
  for (const study::TrialRow& row : view.rows) {
    const auto found = curves.find(row.id);
    if (row.state != study::TrialState::kDone || found == curves.end()) continue;
    const auto& curve = found->second;
    Value shown = Value::array();
    for (std::size_t i = 0; i < curve.size(); ++i) {
      if (i % stride == 0 || i + 1 == curve.size())
        shown.push_back(Value::array({curve[i].seconds, curve[i].value}));
    }
    if (curve.size() > 1) all.push_back({{"trial", row.id}, {"points", std::move(shown)}});
  }
  return all;
}

}  // namespace

std::string plots_json(const StudyView& view, std::string_view version,
                       const study::Findings& findings,
                       const std::vector<study::Convergence>& convergences,
                       const std::vector<study::Curves>& curves) {
  Value root = study_object(view, version, &findings, convergences);
  Value& found = root["findings"];
  Value settings = Value::array();
  for (const auto& setting : study::settings_of(view, findings.pareto_figures))
    settings.push_back(setting_object(view, setting, findings.pareto_figures));
  found["settings"] = std::move(settings);
  for (std::size_t i = 0; i < findings.scalings.size(); ++i)
    found["scaling"][i]["line"] = line_of(findings.scalings[i]);
  for (std::size_t i = 0; i < convergences.size(); ++i)
    found["convergence"][i]["curves"] = curves_of(view, curves[i]);
  return answer_text(root);
}

}  // namespace stoker
