// stoker-accuracy: our forecasts beside measured rows. Everything that is said about accuracy comes
// from here.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <set>
#include <string>

#include "accuracy/common/bench.h"
#include "accuracy/common/report.h"
#include "accuracy/measure_kinds.h"
#include "base/files.h"
#include "base/text.h"

namespace stoker::accuracy {
namespace {

constexpr Bytes kMaxTable{256LL << 20};
constexpr int kBadInput = 3;
constexpr std::string_view kJson = ".json";

struct Options {
  std::string data, only, python, cache, rows, bands, folds;
  std::int64_t sample = 0;
  std::uint64_t seed = 1;
  int jobs = 2;
  bool json = false;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

int complain(const Error& error) {
  std::fprintf(stderr, "stoker-accuracy: %s\n", error.text().c_str());
  return kBadInput;
}

bool is_wanted(const MeasureKind& kind, const std::string& only) {
  if (only.empty()) return true;
  const auto words = split(only, ',');
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word == kind.group || word == std::string(kind.group) + "/" + std::string(kind.name);
  });
}

/// All JSON files of a folder of the shipped data ("measured/input/*.json"), in order of names.
std::vector<std::filesystem::path> shipped_files(const MeasureKind& kind) {
  namespace fs = std::filesystem;
  std::vector<fs::path> found;
  const auto ships = data_folder();
  std::error_code error;
  if (!ships) return found;
  const fs::path folder = *ships / fs::path(kind.table).parent_path();
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == kJson) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// The files that a measure reads, in order of their names; none when there is no such table.
std::vector<std::filesystem::path> files_of(const MeasureKind& kind, const std::string& data) {
  namespace fs = std::filesystem;
  if (kind.table.ends_with(kJson)) return shipped_files(kind);
  const std::size_t star = kind.table.find("*/");
  if (star == std::string_view::npos) {
    const fs::path path = fs::path(data) / kind.table;
    return fs::exists(path) ? std::vector{path} : std::vector<fs::path>{};
  }
  std::vector<fs::path> found;
  const auto ships = data_folder();
  std::error_code error;
  if (!ships) return found;
  for (const auto& entry : fs::directory_iterator(*ships / kind.table.substr(0, star), error)) {
    const fs::path path = entry.path() / kind.table.substr(star + 2);
    if (fs::exists(path)) found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<Table> table_of(const std::vector<std::filesystem::path>& files) {
  Table all;
  for (const auto& path : files) {
    if (path.extension() == kJson) continue;  // no table: the measure reads it itself
    const auto text =
        path.extension() == ".gz" ? read_gzip_file(path, kMaxTable) : read_file(path, kMaxTable);
    if (!text) return tl::unexpected(text.error());
    auto table = TRY(parse_csv(*text, path.string()));
    std::move(table.begin(), table.end(), std::back_inserter(all));
  }
  return all;
}

Result<std::vector<std::pair<const MeasureKind*, Table>>> tables_of(const Options& options,
                                                                    ReportContext& context) {
  std::vector<std::pair<const MeasureKind*, Table>> found;
  for (const MeasureKind& kind : measure_kinds()) {
    if (!is_wanted(kind, options.only)) continue;
    const auto files = files_of(kind, options.data);
    if (files.empty()) {
      context.skipped.push_back(std::string(kind.group) + "/" + std::string(kind.name) +
                                ": there is no " + std::string(kind.table));
      std::fprintf(stderr, "skipped %s\n", context.skipped.back().c_str());
      continue;
    }
    auto table = TRY(table_of(files));
    found.emplace_back(&kind, std::move(table));
  }
  return found;
}

/// Parameter counts of models, from whichever tables state them, whether they are measured against
/// or not.
Status read_parameters(const Options& options, Bench& bench) {
  std::set<std::string_view> seen;
  for (const MeasureKind& kind : measure_kinds()) {
    if (!seen.insert(kind.table).second) continue;
    const auto table = TRY(table_of(files_of(kind, options.data)));
    for (const CsvRow& row : table) {
      if (const double millions = number(row, "param_count_m"); millions > 0)
        bench.parameters[std::string(row["model"])] = millions;
    }
  }
  return {};
}

int run(const Options& options) {
  ReportContext context{{}, today(), options.sample, options.seed, {}};
  auto knowledge = load_knowledge();
  if (!knowledge) return complain(knowledge.error());
  auto gpus = GpuCatalogue::load();
  if (!gpus) return complain(gpus.error());
  const std::filesystem::path cache =
      options.cache.empty() ? cache_folder() / "accuracy" : std::filesystem::path(options.cache);
  auto captures = CaptureStore::open(cache, options.python, options.jobs);
  if (!captures) return complain(captures.error());
  context.versions = captures->versions();
  auto folds = Folds::open(options.folds);
  if (!folds) return complain(folds.error());
  Bench bench{options.data,         options.sample,        options.seed,
              std::move(*captures), std::move(*knowledge), std::move(*gpus)};

  bench.folds = std::move(*folds);
  auto tables = tables_of(options, context);
  if (!tables) return complain(tables.error());
  std::set<CaptureRequest> wanted;
  for (const auto& [kind, table] : *tables) {
    for (CaptureRequest& request : kind->wanted(bench, table)) wanted.insert(std::move(request));
  }
  if (auto status = bench.captures.prepare({wanted.begin(), wanted.end()}); !status)
    return complain(status.error());

  if (auto status = read_parameters(options, bench); !status) return complain(status.error());
  std::vector<Measure> measures;
  for (const auto& [kind, table] : *tables) {
    std::fprintf(stderr, "measuring %s/%s\n", std::string(kind->group).c_str(),
                 std::string(kind->name).c_str());
    for (Measure& measure : kind->run(bench, table)) measures.push_back(std::move(measure));
  }
  if (!options.rows.empty()) {
    if (auto status = write_file(options.rows, rows_as_csv(measures)); !status)
      return complain(status.error());
  }
  if (!options.bands.empty()) {
    if (auto status = write_file(options.bands, memory_bands_as_json(measures, context)); !status)
      return complain(status.error());
  }
  const std::string text = options.json ? as_json(measures, context) : as_text(measures, context);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace
}  // namespace stoker::accuracy

int main(int argc, char** argv) {
  stoker::accuracy::Options options;
  CLI::App app("Compares stoker's forecasts with measured rows.", "stoker-accuracy");
  app.add_option("--data", options.data, "folder with the tables")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--only", options.only,
                 "memory, time, input, or one measure (memory/timm-a100); comma-separated");
  app.add_option("--sample", options.sample,
                 "models of each table, chosen by hash of name and seed (default: all)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", options.seed, "of the sample")->capture_default_str();
  app.add_option(
      "--python", options.python,
      "interpreter with torch, timm, torchvision; without it only what is cached is served");
  app.add_option("--cache", options.cache,
                 "folder for captured steps (default: accuracy in stoker's cache)");
  app.add_option(
      "--folds", options.folds,
      "folder of time coefficients that did not see some rows (scripts/fit-timing --folds)");
  app.add_option("--jobs", options.jobs, "captures at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--rows", options.rows, "file for all rows with truth, forecast and band (CSV)");
  app.add_option("--write-bands", options.bands,
                 "file for the measured error of memory forecasts by kind of job "
                 "(data/coefficients/memory.json)");
  app.add_flag("--json", options.json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return stoker::accuracy::run(options);
}
