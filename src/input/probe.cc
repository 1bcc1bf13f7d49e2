#include "input/probe.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <thread>
#include <utility>

#include "base/text.h"
#include "input/cold_read.h"
#include "input/folder_scan.h"
#include "input/foreign_load.h"

namespace stoker {
namespace {

/// Shares of the budget after which each phase ends.
constexpr double kListingEnds = 0.25;
constexpr double kColdEnds = 0.40;
constexpr double kOneCoreEnds = 0.75;
/// Repetitions of the one-core run; the median over five shrugs off two bad ones.
constexpr int kRepetitions = 5;
/// The all-cores run needs no more than this to settle.
constexpr Nanos kParallelTime = 2.0 * kSecond;

/// What is measured of one picture over the repetitions.
struct Measured {
  const PictureFile* file = nullptr;
  std::vector<SampleRecord> runs;
};

/// Component-wise medians over the repetitions.
SampleRecord median_record(const std::vector<SampleRecord>& runs) {
  SampleRecord out = runs.front();
  std::vector<Nanos> times(runs.size());
  for (std::size_t s = 0; s < kStageCount; ++s) {
    for (std::size_t i = 0; i < runs.size(); ++i) times[i] = runs[i].stage[s];
    // Crop and flip are drawn anew each time: their mean is the cost, not their median.
    const bool random = s == static_cast<std::size_t>(Stage::kResize) ||
                        s == static_cast<std::size_t>(Stage::kFlip);
    if (random) {
      Nanos sum;
      for (const Nanos time : times) sum += time;
      out.stage[s] = sum / static_cast<double>(times.size());
    } else {
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                       times.end());
      out.stage[s] = times[times.size() / 2];
    }
  }
  return out;
}

class Prober {
 public:
  Prober(const ProbeOptions& options, const ProbeProgress& progress)
      : options_(options), progress_(progress), start_(wall_time()) {}

  Result<Probe> run(const std::filesystem::path& folder);

 private:
  [[nodiscard]] Nanos at_share(double share) const { return start_ + options_.budget * share; }
  [[nodiscard]] PipelineOptions pipeline_options() const {
    return {.image_size = options_.image_size};
  }
  void report(std::string_view phase, double share) const {
    if (progress_) progress_(phase, std::clamp(share, 0.0, 1.0));
  }
  void choose_files(FolderListing& listing);
  void one_core();
  void all_cores();
  void summarize();
  [[nodiscard]] Error nothing_usable(const std::filesystem::path& folder) const;

  const ProbeOptions& options_;
  const ProbeProgress& progress_;
  Nanos start_;
  std::vector<PictureFile> files_;
  std::vector<Measured> measured_;
  Probe probe_;
};

void Prober::choose_files(FolderListing& listing) {
  Bytes total;
  for (PictureFile& file : listing.sample) {
    if (files_.size() >= options_.sample) break;
    if (total + file.size > options_.max_read) continue;
    total += file.size;
    files_.push_back(std::move(file));
  }
}

void Prober::one_core() {
  ImagePipeline pipeline(pipeline_options());
  Random random(options_.seed);
  const LoadMeter meter;
  const Nanos deadline = at_share(kOneCoreEnds);
  for (std::size_t i = 0; i < files_.size() && (i == 0 || wall_time() < deadline); ++i) {
    report("one core", static_cast<double>(i) / static_cast<double>(files_.size() * kRepetitions));
    SampleRecord record;
    const PictureFault fault = pipeline.run(files_[i].path, random, record);
    if (fault == PictureFault::kNone) {
      measured_.push_back({&files_[i], {record}});
    } else {
      probe_.diagnostics.add(fault_name(fault), Severity::kWarning, fault_advice(fault));
    }
  }
  for (int repetition = 1; repetition < kRepetitions; ++repetition) {
    for (Measured& picture : measured_) {
      if (wall_time() > deadline) break;
      SampleRecord record;
      if (pipeline.run(picture.file->path, random, record) == PictureFault::kNone)
        picture.runs.push_back(record);
    }
    report("one core", static_cast<double>(repetition + 1) / kRepetitions);
  }
  probe_.foreign = meter.finish();
  for (const Measured& picture : measured_) probe_.samples.push_back(median_record(picture.runs));
}

void Prober::all_cores() {
  const int threads = options_.threads > 0
                          ? options_.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const Nanos deadline =
      std::min(std::max(at_share(1), wall_time() + 0.2 * kSecond), wall_time() + kParallelTime);
  struct Sum {
    double alone = 0, together = 0;  // ns
  };
  std::vector<Sum> sums(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([this, t, threads, deadline, &sum = sums[t]] {
      ImagePipeline pipeline(pipeline_options());
      Random random(options_.seed + static_cast<std::uint64_t>(t) + 1);
      std::size_t at =
          measured_.size() * static_cast<std::size_t>(t) / static_cast<std::size_t>(threads);
      do {
        SampleRecord record;
        if (pipeline.run(measured_[at].file->path, random, record) == PictureFault::kNone) {
          sum.alone += probe_.samples[at].total().count();
          sum.together += record.total().count();
        }
        at = (at + 1) % measured_.size();
      } while (wall_time() < deadline);
    });
  }
  for (std::thread& thread : running) thread.join();
  Sum all;
  for (const Sum& sum : sums) {
    all.alone += sum.alone;
    all.together += sum.together;
  }
  ParallelFacts& facts = probe_.parallel;
  facts.threads = threads;
  facts.efficiency = all.together > 0 ? std::clamp(all.alone / all.together, 0.01, 1.0) : 1;
  facts.samples_per_s_one = 1000 / probe_.sample_ms.mean;
  facts.samples_per_s_all = facts.samples_per_s_one * threads * facts.efficiency;
}

void Prober::summarize() {
  std::vector<double> totals;
  double pixels = 0;
  for (const SampleRecord& sample : probe_.samples) {
    totals.push_back(milliseconds(sample.total()));
    pixels += 1e6 * sample.megapixels();
    if (sample.progressive) {
      probe_.diagnostics.add("progressive_pictures", Severity::kNote,
                             "Progressive JPEG costs more to decode than baseline.");
    }
    if (sample.cmyk) {
      probe_.diagnostics.add("cmyk_pictures", Severity::kNote,
                             "CMYK pictures are converted to RGB.");
    }
  }
  for (std::size_t s = 0; s < kStageCount; ++s) {
    std::vector<double> times;
    for (const SampleRecord& sample : probe_.samples)
      times.push_back(milliseconds(sample.stage[s]));
    probe_.stage_ms[s] = spread_of(std::move(times));
  }
  probe_.sample_ms = spread_of(std::move(totals));
  probe_.decode = fit_decode(probe_.samples);
  probe_.read.warm_ms = probe_.stage_ms[static_cast<std::size_t>(Stage::kRead)].mean;
  probe_.dataset.mean_pixels = pixels / static_cast<double>(probe_.samples.size());
}

Error Prober::nothing_usable(const std::filesystem::path& folder) const {
  std::string counts;
  for (const Diagnostic& problem : probe_.diagnostics.all()) {
    if (problem.severity != Severity::kWarning) continue;
    counts += (counts.empty() ? "" : ", ") + with_commas(problem.count) + " " + problem.name;
  }
  return {ErrorCode::kBadInput,
          "none of the " + with_commas(static_cast<std::int64_t>(files_.size())) +
              " pictures tried could be decoded (" + counts +
              "); give a folder with sound JPEG files",
          folder.string()};
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "unknown";
}

ProbeProvenance provenance_of(const std::filesystem::path& folder, int threads) {
  ProbeProvenance out;
  out.stoker_version = STOKER_VERSION;
  out.cpu_model = cpu_model();
  out.cores = threads;
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  out.date = text;
  std::error_code ignored;
  const std::uint64_t hash = fnv1a(std::filesystem::weakly_canonical(folder, ignored).string());
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  out.folder_hash = text;
  return out;
}

Result<Probe> Prober::run(const std::filesystem::path& folder) {
  report("listing", 0);
  Result<FolderListing> listing = scan_folder(folder, {.max_entries = options_.max_entries,
                                                       .max_time = options_.budget * kListingEnds,
                                                       .seed = options_.seed});
  if (!listing) return tl::unexpected(listing.error());
  probe_.dataset = {.name = listing->name,
                    .files = listing->jpeg_files,
                    .files_exact = listing->complete,
                    .total_bytes = listing->total_bytes,
                    .bytes_exact = listing->sizes_exact,
                    .mean_bytes = listing->mean_bytes};
  probe_.diagnostics = listing->diagnostics;
  probe_.image_size = options_.image_size;
  choose_files(*listing);
  if (files_.empty()) {
    return fail(ErrorCode::kBadInput,
                "every picture is larger than the " + human_bytes(options_.max_read) +
                    " that may be read; raise --max-read",
                folder.string());
  }
  report("cold read", 0);
  probe_.read = measure_cold_reads(files_, at_share(kColdEnds), options_.max_read);
  one_core();
  if (measured_.empty()) return tl::unexpected(nothing_usable(folder));
  summarize();
  report("all cores", 0);
  all_cores();
  report("all cores", 1);
  probe_.provenance = provenance_of(folder, probe_.parallel.threads);
  return std::move(probe_);
}

double decode_ms(const SampleRecord& sample) {
  return milliseconds(sample.stage[static_cast<std::size_t>(Stage::kDecode)]);
}
double megabytes(const SampleRecord& sample) {
  return 1e-6 * static_cast<double>(sample.bytes.count());
}

DecodeFit fit_two_terms(const std::vector<SampleRecord>& samples) {
  DecodeFit fit;
  double pp = 0, pb = 0, bb = 0, py = 0, by = 0, mean = 0;
  for (const SampleRecord& sample : samples) {
    const double p = sample.megapixels(), b = megabytes(sample), y = decode_ms(sample);
    pp += p * p, pb += p * b, bb += b * b, py += p * y, by += b * y;
    mean += y / static_cast<double>(samples.size());
  }
  const double determinant = pp * bb - pb * pb;
  if (determinant > 1e-9 * pp * bb) {
    fit.per_megapixel = (py * bb - by * pb) / determinant;
    fit.per_megabyte = (by * pp - py * pb) / determinant;
  }
  // Pictures that are all alike cannot tell the two terms apart: neither may be negative.
  if (fit.per_megabyte <= 0 && pp > 0) fit.per_megapixel = py / pp, fit.per_megabyte = 0;
  if (fit.per_megapixel <= 0 && bb > 0) fit.per_megapixel = 0, fit.per_megabyte = by / bb;
  double rest = 0, all = 0;
  for (const SampleRecord& sample : samples) {
    const double y = decode_ms(sample);
    const double guess =
        fit.per_megapixel * sample.megapixels() + fit.per_megabyte * megabytes(sample);
    rest += (y - guess) * (y - guess);
    all += (y - mean) * (y - mean);
  }
  fit.r2 = all > 0 ? std::max(0.0, 1 - rest / all) : 0;
  return fit;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  Spread out;
  if (values.empty()) return out;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) out.mean += value / n;
  for (const double value : values) out.sd += (value - out.mean) * (value - out.mean) / n;
  out.sd = std::sqrt(out.sd);
  std::sort(values.begin(), values.end());
  out.median = values[values.size() / 2];
  out.p95 = values[std::min(values.size() - 1, values.size() * 95 / 100)];
  return out;
}

DecodeFit fit_decode(const std::vector<SampleRecord>& samples) {
  std::vector<SampleRecord> baseline, progressive;
  for (const SampleRecord& sample : samples)
    (sample.progressive ? progressive : baseline).push_back(sample);
  DecodeFit fit = fit_two_terms(baseline.empty() ? samples : baseline);
  if (samples.empty()) return fit;
  fit.progressive_share =
      static_cast<double>(progressive.size()) / static_cast<double>(samples.size());
  double measured = 0, expected = 0;
  for (const SampleRecord& sample : progressive) {
    measured += decode_ms(sample);
    expected += fit.per_megapixel * sample.megapixels() + fit.per_megabyte * megabytes(sample);
  }
  if (!baseline.empty() && expected > 0) fit.progressive_ratio = measured / expected;
  return fit;
}

Result<Probe> probe_folder(const std::filesystem::path& folder, const ProbeOptions& options,
                           const ProbeProgress& progress) {
  return Prober(options, progress).run(folder);
}

}  // namespace stoker
