#include "input/probe/probe.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <thread>
#include <utility>

#include "base/text.h"
#include "input/data/text_lines.h"
#include "input/probe/cold_read.h"
#include "system/clocks.h"
#include "system/host_limits.h"
#include "system/processor.h"

namespace stoker {
namespace {

/// Shares of the budget after which each phase ends.
constexpr double kListingEnds = 0.20;
constexpr double kLoadingEnds = 0.30;
constexpr double kColdEnds = 0.40;
constexpr double kStorageEnds = 0.55;
constexpr double kOneCoreEnds = 0.80;
/// Files asked whether the page cache holds them: a share of one half is then known to 3 %.
constexpr std::size_t kResidencyFiles = 1000;
/// Its share of the wall time.
constexpr double kResidencyTime = 0.05;
/// Repetitions of the one-core run; the median over five shrugs off two bad ones.
constexpr int kRepetitions = 5;
/// The all-cores run needs no more than this to settle.
constexpr Nanos kParallelTime = 2.0 * kSecond;

/// What is measured of one image over the repetitions.
struct Measured {
  const DataSample* sample = nullptr;
  std::vector<SampleRecord> runs;
};

/// Lines that stand for a block of text in the file: enough for the spread of their lengths.
constexpr std::size_t kLinesShown = 4;

/// What the images are like, told once for each kind of oddity.
void note_oddities(const SampleRecord& record, const DataSample& sample, Diagnostics& out) {
  const auto note = [&out](std::string_view name, std::string_view advice) {
    out.add(name, Severity::kNote, advice);
  };
  if (record.progressive)
    note("progressive_pictures", "Progressive JPEG costs more to decode than baseline.");
  if (record.interlaced)
    note("interlaced_pictures", "Interlaced PNG costs more to decode than plain PNG.");
  if (record.cmyk) note("cmyk_pictures", "CMYK pictures are converted to RGB.");
  if (record.sixteen_bit) {
    note("sixteen_bit_pictures",
         "Pictures of 16 bits a channel were cut to 8; Pillow's convert(\"RGB\") clips grey ones "
         "at 255 instead, which leaves them almost white: scale them first.");
  }
  if (!sample.path.empty() &&
      record.png != (file_ending(sample.path.filename().string()) == "png")) {
    note("misnamed_pictures",
         "Pictures whose name says JPEG and whose content is PNG, or the other way round, were "
         "taken by their content, as Pillow does.");
  }
}

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
  void look_at_storage(const std::filesystem::path& folder);
  void cold_reads();
  void storage_reads();
  void reads_of_shards();
  void one_core();
  void all_cores();
  void summarize();
  [[nodiscard]] Error nothing_usable(const std::filesystem::path& folder) const;

  const ProbeOptions& options_;
  const ProbeProgress& progress_;
  Nanos start_;
  DataSet set_;
  std::vector<Measured> measured_;
  std::vector<SampleRecord> medians_;  ///< one each of `measured_`
  Probe probe_;
};

/// For files that hold one sample each; shards and records are read in one piece.
void Prober::cold_reads() {
  if (set_.kind != DataKind::kPictures) return;
  std::vector<DataFile> files;
  for (const DataSample& sample : set_.samples) files.push_back({sample.path, sample.bytes});
  report("cold read", 0);
  probe_.read = measure_cold_reads(files, at_share(kColdEnds), options_.max_read);
}

/// What has to be known before anything is read.
void Prober::look_at_storage(const std::filesystem::path& folder) {
  if (!options_.storage) return;
  StorageFacts& storage = probe_.storage.emplace();
  storage.file_system = file_system_of(folder);
  storage.list_entries_per_s = set_.entries_per_s;
  storage.stat_us = set_.stat_us;
  storage.resident =
      residency_of(set_.files, kResidencyFiles, wall_time() + options_.budget * kResidencyTime);
  read_host_memory(system_files(), storage);
}

void Prober::storage_reads() {
  if (!probe_.storage) return;
  report("storage", 0);
  Bytes used;
  for (const DataSample& sample : set_.samples) used += sample.bytes;
  // At least a tenth of a second, whatever the listing took.
  const Nanos deadline = std::max(at_share(kStorageEnds), wall_time() + 0.1 * kSecond);
  measure_storage(set_.files,
                  {.deadline = deadline,
                   .max_read = std::max(Bytes{}, options_.max_read - used),
                   .seed = options_.seed},
                  *probe_.storage, probe_.diagnostics);
  if (set_.kind == DataKind::kTarShards || set_.kind == DataKind::kText) reads_of_shards();
}

/// Samples that lie one after the other cost their bytes and no seeks.
void Prober::reads_of_shards() {
  const StorageFacts& storage = *probe_.storage;
  probe_.read.resident_share = storage.resident.share;
  const double one = storage.sequential_bytes_per_s > 0 ? storage.sequential_bytes_per_s
                     : storage.whole_files.empty()      ? 0
                                                        : storage.whole_files.front().bytes_per_s;
  if (one <= 0) return;
  double best = one;
  for (const DepthFacts& row : storage.whole_files) best = std::max(best, row.bytes_per_s);
  const double bytes = static_cast<double>(probe_.dataset.total_bytes.count()) /
                       static_cast<double>(std::max<std::int64_t>(1, probe_.dataset.samples));
  probe_.read.cold_measured = true;
  probe_.read.cold_ms = 1e3 * bytes / one;
  probe_.read.cold_bandwidth = one;
  probe_.read.cold_speedup = std::min(best / one, double{kQueueDepths[4]});
}

void Prober::one_core() {
  ImagePipeline pipeline(pipeline_options());
  Random random(options_.seed);
  const ContentionMeter meter;
  const Nanos deadline = at_share(kOneCoreEnds);
  const std::vector<DataSample>& samples = set_.samples;
  for (std::size_t i = 0; i < samples.size() && (i == 0 || wall_time() < deadline); ++i) {
    report("one core", static_cast<double>(i) / static_cast<double>(samples.size() * kRepetitions));
    SampleRecord record;
    const PictureFault fault = run_sample(samples[i], set_.kind, pipeline, random, record);
    if (fault == PictureFault::kNone) {
      measured_.push_back({&samples[i], {record}});
    } else {
      probe_.diagnostics.add(fault_name(fault), Severity::kWarning, fault_advice(fault));
    }
  }
  for (int repetition = 1; repetition < kRepetitions; ++repetition) {
    for (Measured& picture : measured_) {
      if (wall_time() > deadline) break;
      SampleRecord record;
      if (run_sample(*picture.sample, set_.kind, pipeline, random, record) == PictureFault::kNone)
        picture.runs.push_back(record);
    }
    report("one core", static_cast<double>(repetition + 1) / kRepetitions);
  }
  probe_.contention = meter.finish();
  for (const Measured& picture : measured_) medians_.push_back(median_record(picture.runs));
}

void Prober::all_cores() {
  const int usable = std::max(1, static_cast<int>(this_host_limits().usable_cores()));
  const int threads = options_.threads > 0 ? options_.threads : usable;
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
        if (run_sample(*measured_[at].sample, set_.kind, pipeline, random, record) ==
            PictureFault::kNone) {
          sum.alone += medians_[at].total().count();
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

/// A block's cost divided among some of its lines, in proportion to their lengths.
void add_lines(const SampleRecord& block, const DataSample& sample,
               std::vector<SampleRecord>& out) {
  const std::vector<std::int64_t> lengths = line_lengths(sample.content);
  const std::size_t shown = std::min(kLinesShown, lengths.size());
  double sum = 0;
  for (std::size_t i = 0; i < shown; ++i)
    sum += static_cast<double>(lengths[i * lengths.size() / shown]);
  const auto lines = static_cast<double>(lengths.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const double share = static_cast<double>(lengths[i * lengths.size() / shown]) / sum *
                         static_cast<double>(shown) / lines;
    SampleRecord line;
    line.bytes = Bytes(
        std::max<std::int64_t>(1, std::llround(share * static_cast<double>(block.bytes.count()))));
    for (std::size_t s = 0; s < kStageCount; ++s) line.stage[s] = block.stage[s] * share;
    out.push_back(line);
  }
}

void Prober::summarize() {
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const DataSample& sample = *measured_[i].sample;
    if (set_.kind == DataKind::kText) {
      add_lines(medians_[i], sample, probe_.samples);
    } else {
      note_oddities(medians_[i], sample, probe_.diagnostics);
      probe_.samples.push_back(medians_[i]);
    }
  }
  std::vector<double> totals;
  double pixels = 0;
  for (const SampleRecord& sample : probe_.samples) {
    totals.push_back(milliseconds(sample.total()));
    pixels += 1e6 * sample.megapixels();
  }
  for (std::size_t s = 0; s < kStageCount; ++s) {
    std::vector<double> times;
    for (const SampleRecord& sample : probe_.samples)
      times.push_back(milliseconds(sample.stage[s]));
    probe_.stage_ms[s] = spread_of(std::move(times));
  }
  probe_.sample_ms = spread_of(std::move(totals));
  std::vector<SampleRecord> png, others;
  for (const SampleRecord& sample : probe_.samples) (sample.png ? png : others).push_back(sample);
  probe_.decode = fit_decode(others);
  probe_.decode_png = fit_decode(png);
  probe_.png_share = static_cast<double>(png.size()) / static_cast<double>(probe_.samples.size());
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
          "none of the " + with_commas(static_cast<std::int64_t>(set_.samples.size())) +
              " pictures tried could be decoded (" + counts +
              "); give a folder with sound JPEG or PNG files",
          folder.string()};
}

ProbeProvenance provenance_of(const std::filesystem::path& folder, int threads) {
  ProbeProvenance out;
  out.stoker_version = STOKER_VERSION;
  const std::string cpu = this_processor().name;
  out.cpu_model = cpu.empty() ? "unknown" : cpu;
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
  const DataSetOptions wanted{.scan = {.max_entries = options_.max_entries,
                                       .max_time = options_.budget * kListingEnds,
                                       .seed = options_.seed},
                              .kind = options_.kind,
                              .samples = options_.sample,
                              .max_read = options_.max_read,
                              .deadline = at_share(kLoadingEnds),
                              .seed = options_.seed};
  auto set = TRY(list_data_set(folder, wanted));
  set_ = std::move(set);
  look_at_storage(folder);
  if (const Status loaded = load_samples(folder, wanted, set_); !loaded)
    return tl::unexpected(loaded.error());
  probe_.kind = set_.kind;
  probe_.format = set_.format;
  probe_.dataset = set_.facts;
  probe_.diagnostics = set_.diagnostics;
  probe_.image_size = options_.image_size;
  if (set_.samples.empty()) {
    return fail(ErrorCode::kBadInput,
                "every file is larger than the " + human_bytes(options_.max_read) +
                    " that may be read; raise --max-read",
                folder.string());
  }
  cold_reads();
  storage_reads();
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
  // Images that are all alike cannot tell the two terms apart: neither may be negative.
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
