#include "report/json/json_parts.h"
#include "report/model/calibration_report.h"

namespace stoker {
namespace {

constexpr int kCalibrationMajor = 1, kCalibrationMinor = 0;

}  // namespace

std::string calibration_json(const CalibratedMachine& m, const CalibrationRuns& runs,
                             const CalibrationSaid& said) {
  Json root = answer("stoker-calibrate-1", said.version);
  root["schema_version"] = {kCalibrationMajor, kCalibrationMinor};
  root["device"] = {{"kind", runs.device.cpu ? "cpu" : "gpu"},
                    {"name", runs.device.name},
                    {"cores", runs.device.cores},
                    {"memory_bytes", runs.device.memory.count()},
                    {"mig", runs.device.mig}};
  root["file"] = said.file;
  root["updated"] = m.updated;
  root["complete"] = runs.complete;
  root["load"] = {
      {"foreign_share", runs.load.foreign_share}, {"steal_share", runs.load.steal_share},
      {"others_on_gpu", runs.load.others_on_gpu}, {"clocks_changed", runs.load.clocks_changed},
      {"disturbed", runs.load.disturbed},         {"why", runs.load.why}};
  root["sustained"] = Json::array();
  for (const SustainedRate& r : m.rates) {
    root["sustained"].push_back({{"what", name_of(r.kind)},
                                 {"threads", r.threads},
                                 {"unit", counts_bytes(r.kind) ? "B/s" : "FLOP/s"},
                                 {"measured", r.measured},
                                 {"data_sheet", r.sheet > 0 ? Json(r.sheet) : Json(nullptr)},
                                 {"spread", r.spread}});
  }
  root["figures"] = Json::array();
  for (const MeasuredFigure& f : m.calibration.figures)
    root["figures"].push_back(
        {{"name", f.name}, {"threads", f.threads}, {"value", f.value}, {"spread", f.spread}});
  root["operators"] = {{"measured", m.measured_operators}, {"kept", m.kept_operators}};
  root["spread"] = {
      {"median", m.median_spread}, {"worst", m.worst_spread}, {"worst_at", m.worst_label}};
  root["changes"] = Json::array();
  for (const FigureChange& c : m.changes) {
    root["changes"].push_back({{"name", c.name},
                               {"threads", c.threads},
                               {"before", c.before},
                               {"now", c.now},
                               {"change", c.change()}});
  }
  root["provenance"] = Json::object();
  for (const auto& [key, value] : m.file.provenance) root["provenance"][key] = value;
  root["notes"] = m.notes;
  return answer_text(root);
}

}  // namespace stoker
