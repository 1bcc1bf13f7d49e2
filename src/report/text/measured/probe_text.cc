#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "report/model/report.h"
#include "report/text/layout.h"
#include "report/text/measured/storage_text.h"

namespace stoker {
namespace {
using namespace layout;

/// "pets: 615 pictures in 615 files, 29.2 MiB, mean 48.6 KiB and 0.23 MP".
std::string heading(const Probe& probe) {
  const DatasetFacts& d = probe.dataset;
  const std::string_view word = sample_word(probe.kind);
  const bool bound = probe.kind == DataKind::kPictures && d.files_estimate <= d.files;
  std::string text = fmt::format("{}: {}{} {}{}", d.name,
                                 d.samples_exact ? ""
                                 : bound         ? "at least "
                                                 : "about ",
                                 with_commas(d.samples), word, d.samples == 1 ? "" : "s");
  if (probe.kind != DataKind::kPictures) {
    text += fmt::format(" in {}{} file{} ({})", d.files_exact ? "" : "at least ",
                        with_commas(d.files), d.files == 1 ? "" : "s", probe.format);
  } else if (!d.files_exact && !bound) {
    text += fmt::format(" ({} were listed)", with_commas(d.files));
  }
  const double mean = static_cast<double>(d.total_bytes.count()) /
                      static_cast<double>(std::max<std::int64_t>(1, d.samples));
  text += fmt::format(", {}{}, mean {}", d.bytes_exact ? "" : "about ", human_bytes(d.total_bytes),
                      human_bytes(Bytes(static_cast<std::int64_t>(mean))));
  if (d.mean_pixels > 0) text += fmt::format(" and {} MP", two_digits(d.mean_pixels * 1e-6));
  return text + "\n\n";
}

std::string stage_table(const Probe& probe) {
  // A line of text takes less than a microsecond.
  const bool text = probe.kind == DataKind::kText;
  const double unit = text ? 1e6 : 1;
  std::vector<std::vector<std::string>> rows{
      {"stage (C++)", text ? "mean ns" : "mean ms", "median", "p95"}};
  const auto add = [&](std::string_view name, const Spread& spread) {
    std::vector<std::string> row{std::string(name)};
    for (const double value : {spread.mean, spread.median, spread.p95})
      row.push_back(text ? fmt::format("{:.0f}", value * unit) : fmt::format("{:.3g}", value));
    rows.push_back(std::move(row));
  };
  for (std::size_t s = 0; s < kStageCount; ++s) {
    if (text && s > static_cast<std::size_t>(Stage::kDecode)) break;
    const bool split = text && s == static_cast<std::size_t>(Stage::kDecode);
    add(split ? "split" : stage_name(static_cast<Stage>(s)), probe.stage_ms[s]);
  }
  add("all", probe.sample_ms);
  return table(rows, {0});
}

std::string decode_lines(const Probe& probe) {
  constexpr double kEnoughForAFit = 8;
  const auto samples = static_cast<double>(probe.samples.size());
  std::string text;
  const auto add = [&](std::string_view what, double count, const DecodeFit& fit) {
    if (count < kEnoughForAFit) return;
    text += fmt::format("{}: {:.1f} ms/MP + {:.1f} ms/MB (R2 {:.2f})\n", what, fit.per_megapixel,
                        fit.per_megabyte, fit.r2);
  };
  if (probe.kind == DataKind::kPictures || probe.kind == DataKind::kTarShards) {
    add("Decoding JPEG", samples * (1 - probe.png_share), probe.decode);
    add("Decoding PNG", samples * probe.png_share, probe.decode_png);
  }
  return (text.empty() ? "" : "\n") + text;
}

std::string read_line(const Probe& probe) {
  switch (probe.kind) {
    case DataKind::kRecords:
      return "Reading: once, before training; the records stay in memory\n";
    case DataKind::kTarShards:
    case DataKind::kText:
      return fmt::format("Reading: from front to back, {} CPU a {}\n",
                         human_time(kMillisecond * probe.read.warm_ms), sample_word(probe.kind));
    case DataKind::kPictures:
      break;
  }
  return probe.read.cold_measured
             ? fmt::format(
                   "Reading: cold {:.2f} ms a file, warm {:.2f} ms; {} was in the page "
                   "cache\n",
                   probe.read.cold_ms, probe.read.warm_ms, percent(probe.read.resident_share))
             : fmt::format(
                   "Reading: warm {:.2f} ms a file; cold reads could not be measured "
                   "here\n",
                   probe.read.warm_ms);
}
}  // namespace

std::string probe_text(const Probe& probe, const LoaderProfile& profile,
                       const std::vector<Bytes>& memories) {
  const SampleCost cost = sample_cost_from_probe(probe, profile);
  const std::string_view word = sample_word(probe.kind);
  std::string text = heading(probe);
  const double one = 1e9 / cost.mean_cpu().count();
  text += fmt::format("One worker {} {} {}s/s [{}-{}] {} ({} a {})\n",
                      probe.kind == DataKind::kText ? "reads" : "prepares", number(one), word,
                      number(one / (1 + cost.band.above)), number(one / (1 - cost.band.below)),
                      probe.kind == DataKind::kText
                          ? "with Python's file iterator and split(); tokenising comes on top"
                          : "with Pillow and torchvision",
                      human_time(cost.mean_cpu()), word);
  text += fmt::format("All {} cores together keep {} of that each\n", probe.parallel.threads,
                      percent(probe.parallel.efficiency));
  const std::vector<CacheWhatIf> caches = cache_what_if(probe, cost, memories);
  text += pace_text(probe, caches) + "\n";
  text += stage_table(probe);
  text += decode_lines(probe);
  text += read_line(probe);
  text += storage_text(probe);
  text += cache_text(probe, caches);
  text += "\n";
  for (const std::string& advice : storage_advice(probe, caches)) text += "next: " + advice + "\n";
  if (const std::string warning = contention_warning(probe.contention); !warning.empty())
    text += "warning: " + warning + "\n";
  text += footer({cost.basis, probe.provenance.cpu_model});
  // What else lies there is no fault of the data, but must not be missed.
  for (const Diagnostic& d : probe.diagnostics.all()) {
    if (d.name == "other_data") text += "note: " + d.advice + "\n";
  }
  return text + diagnostics(probe.diagnostics);
}

}  // namespace stoker
