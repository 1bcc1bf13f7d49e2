#include "accuracy/common/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "json/value.h"

namespace stoker::accuracy {
namespace {

using Json = json::Value;

constexpr double kListedError = 0.10;  ///< rows that are further off are listed
constexpr std::size_t kListedRows = 25;
const std::string kUnknownCause = "unknown";
constexpr int kBandsSchema = 3;
constexpr std::size_t kRowsForBand = 5;  ///< below that the extremes say nothing

void add(Json& to, const Score& s) {
  to["rows"] = s.rows;
  to["mape"] = s.mape;
  to["mdape"] = s.mdape;
  to["p90"] = s.p90;
  to["bias"] = s.bias;
  to["coverage"] = s.coverage ? Json(*s.coverage) : Json(nullptr);
  to["width"] = s.width ? Json(*s.width) : Json(nullptr);
  to["interval_score"] = s.interval_score ? Json(*s.interval_score) : Json(nullptr);
  to["constant_width_score"] =
      s.constant_width_score ? Json(*s.constant_width_score) : Json(nullptr);
}

double relative_error(const Pair& p) { return p.predicted / p.truth - 1; }

std::vector<Pair> worst(const Measure& m) {
  std::vector<Pair> result;
  std::copy_if(m.pairs.begin(), m.pairs.end(), std::back_inserter(result),
               [](const Pair& p) { return std::abs(relative_error(p)) > kListedError; });
  std::sort(result.begin(), result.end(), [](const Pair& a, const Pair& b) {
    return std::abs(relative_error(a)) > std::abs(relative_error(b));
  });
  return result;
}

Json json_of(const Measure& m) {
  Json j;
  j["name"] = m.name;
  j["what"] = m.what;
  add(j, m.score);
  if (m.rival) {
    j["rival"] = {{"name", m.rival->name},
                  {"rows", m.rival->rows},
                  {"mape", m.rival->mape},
                  {"mdape", m.rival->mdape},
                  {"p90", m.rival->p90}};
  } else {
    j["rival"] = nullptr;
  }
  if (m.cross_fitted) add(j["cross_fitted"], *m.cross_fitted);
  for (const auto& [name, value] : m.shares) j["shares"][name] = value;
  j["notes"] = m.notes;
  j["off_by_more_than_10_percent"] = Json::array();
  for (const Pair& p : worst(m)) {
    j["off_by_more_than_10_percent"].push_back(
        {{"row", p.label},
         {"truth", p.truth},
         {"predicted", p.predicted},
         {"cause", p.cause.empty() ? kUnknownCause : p.cause}});
  }
  j["unserved"] = Json::array();
  for (const Unserved& u : m.unserved)
    j["unserved"].push_back({{"row", u.row}, {"reason", u.reason}});
  return j;
}

/// For kinds of which few rows are known: the band of all, stretched until it holds theirs.
BandForm wide_enough(BandForm form, const std::vector<Pair>& pairs) {
  double below = 1, above = 1;
  for (const Pair& p : pairs) {
    const double error = p.truth - p.predicted;
    below = std::max(below, -error / form.below.at(p.predicted));
    above = std::max(above, error / form.above.at(p.predicted));
  }
  const auto stretch = [](Reach& r, double by) { r.share *= by, r.fixed *= by, r.least *= by; };
  stretch(form.below, below);
  stretch(form.above, above);
  return form;
}

Json json_of(const Reach& reach) {
  const auto bytes = [](double mebibytes) {
    return static_cast<std::int64_t>(std::llround(mebibytes)) << 20;
  };
  return {{"share", std::ceil(reach.share * 1e4) / 1e4},
          {"bytes", bytes(reach.fixed)},
          {"least_bytes", bytes(reach.least)}};
}

std::string line_of(const Score& s) {
  std::string text =
      fmt::format("{:>5} rows  MAPE {:5.2f}  MdAPE {:5.2f}  p90 {:5.1f}  bias {:+5.1f}", s.rows,
                  s.mape, s.mdape, s.p90, s.bias);
  if (s.coverage)
    text += fmt::format("  band holds {:4.1f}, width {:4.1f}, interval score {:4.1f}", *s.coverage,
                        *s.width, *s.interval_score);
  if (s.constant_width_score)
    text += fmt::format(" (constant width: {:4.1f})", *s.constant_width_score);
  return text;
}

void add_causes(std::string& text, const std::vector<Pair>& off) {
  std::map<std::string, int> causes;
  for (const Pair& p : off) ++causes[p.cause.empty() ? kUnknownCause : p.cause];
  if (causes.size() == 1 && causes.count(kUnknownCause) > 0) return;
  for (const auto& [cause, count] : causes)
    text += fmt::format("      cause of {:>3}: {}\n", count, cause);
}

void add_unserved(std::string& text, const Measure& m) {
  if (m.unserved.empty()) return;
  std::map<std::string, std::pair<int, std::string>> reasons;  // reason -> count, first row
  for (const Unserved& u : m.unserved) {
    auto& [count, row] = reasons[u.reason.substr(0, u.reason.find('\n'))];
    if (count++ == 0) row = u.row;
  }
  text += fmt::format("    {} rows could not be served:\n", m.unserved.size());
  for (const auto& [reason, where] : reasons)
    text += fmt::format("      {:>4} x {} (first: {})\n", where.first, reason, where.second);
}

}  // namespace

std::string as_text(const std::vector<Measure>& measures, const ReportContext& context) {
  std::string text =
      fmt::format("{}; captured with {}", context.date,
                  context.versions.empty() ? "what the cache holds" : context.versions);
  if (context.sample > 0)
    text += fmt::format("; {} models of each table, seed {}", context.sample, context.seed);
  text += "; percent\n";
  for (const std::string& s : context.skipped) text += fmt::format("skipped: {}\n", s);
  for (const Measure& m : measures) {
    text += fmt::format("\n{:<32} {}\n", m.name, line_of(m.score));
    text += fmt::format("    {}\n", m.what);
    if (m.cross_fitted)
      text += fmt::format("    cross-fitted by family   {}\n", line_of(*m.cross_fitted));
    if (m.rival)
      text +=
          fmt::format("    rival: {} on {} rows: MAPE {:.2f}  MdAPE {:.2f}  p90 {:.1f}\n",
                      m.rival->name, m.rival->rows, m.rival->mape, m.rival->mdape, m.rival->p90);
    for (const auto& [name, value] : m.shares) text += fmt::format("    {} {:.1f}\n", name, value);
    for (const std::string& note : m.notes) text += fmt::format("    note: {}\n", note);
    const auto off = worst(m);
    if (!off.empty()) text += fmt::format("    {} rows are off by more than 10 %\n", off.size());
    for (std::size_t i = 0; i < std::min(off.size(), kListedRows); ++i) {
      text += fmt::format("      {:+6.1f}  {} (truth {:.0f}, predicted {:.0f}){}{}\n",
                          100 * relative_error(off[i]), off[i].label, off[i].truth,
                          off[i].predicted, off[i].cause.empty() ? "" : ": ", off[i].cause);
    }
    add_causes(text, off);
    if (off.size() > kListedRows) text += "      ... (all of them in --json)\n";
    add_unserved(text, m);
  }
  return text;
}

std::string memory_bands_as_json(const std::vector<Measure>& measures,
                                 const ReportContext& context) {
  std::map<std::string, std::vector<Pair>> kinds;
  std::map<std::string, std::set<std::string>> sources;
  for (const Measure& m : measures) {
    for (const Pair& p : m.pairs) {
      if (p.kind.empty()) continue;
      for (const std::string& kind : {p.kind, std::string("default")}) {
        kinds[kind].push_back(p);
        sources[kind].insert(m.name);
      }
    }
  }
  Json root;
  root["schema_version"] = kBandsSchema;
  root["date"] = context.date;
  root["captured_with"] = context.versions;
  root["bands"] = Json::array();
  const auto bands = bands_by_kind(kinds["default"]);
  const auto need = need_of(kinds["default"]);
  for (const auto& [kind, pairs] : kinds) {
    if (pairs.size() < kRowsForBand) continue;
    const auto own = bands.find(kind);
    const BandForm& all = bands.at("");
    const BandForm form = own != bands.end()  ? own->second
                          : kind == "default" ? all
                                              : wide_enough(all, pairs);
    const std::string tables = fmt::format("{}", fmt::join(sources[kind], ", "));
    root["bands"].push_back({{"case", kind},
                             {"below", json_of(form.below)},
                             {"above", json_of(form.above)},
                             {"rows", pairs.size()},
                             {"basis", fmt::format("band from {} measured peaks", pairs.size())},
                             {"tables", tables}});
    // Without trials and in half precision nobody measured what is needed: the band decides there.
    if (need && kind.ends_with("-fp32-benchmark")) {
      root["bands"].back()["need"] = json_of(need->reach);
      root["bands"].back()["need"]["workspaces"] = need->workspaces;
    }
  }
  return root.dump(2) + "\n";
}

namespace {

/// Labels hold commas: "mpt-7b 2048 x 6, 8 A100-SXM4-80GB".
std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string rows_as_csv(const std::vector<Measure>& measures) {
  std::string text = "measure,row,kind,truth,predicted,low,high\n";
  for (const Measure& m : measures) {
    for (const Pair& p : m.pairs) {
      const Band band = p.band.value_or(Band{});
      text += fmt::format("{},{},{},{:.6g},{:.6g},{:.6g},{:.6g}\n", m.name, csv_cell(p.label),
                          csv_cell(p.kind), p.truth, p.predicted, p.predicted * (1 - band.below),
                          p.predicted * (1 + band.above));
    }
  }
  return text;
}

std::string as_json(const std::vector<Measure>& measures, const ReportContext& context) {
  Json root;
  root["schema_version"] = 1;
  root["date"] = context.date;
  root["captured_with"] = context.versions;
  root["sample"] = context.sample;
  root["seed"] = context.seed;
  root["skipped"] = context.skipped;
  root["measures"] = Json::array();
  for (const Measure& m : measures) root["measures"].push_back(json_of(m));
  return root.dump(2) + "\n";
}

}  // namespace stoker::accuracy
