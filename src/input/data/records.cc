#include "input/data/records.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/setting.h"
#include "base/text.h"
#include "input/data/unpacked_file.h"
#include "system/clocks.h"

namespace stoker {
namespace {

constexpr int kCifarSide = 32;
constexpr std::int64_t kCifarPixels = std::int64_t{3} * kCifarSide * kCifarSide;
/// Records whose labels are looked at before a binary is believed to be CIFAR.
constexpr std::int64_t kLabelsLookedAt = 8;
constexpr std::size_t kHead = 8 * 3074;
/// A larger side is no image of an idx file but a sign of damage.
constexpr std::int64_t kMaxIdxSide = 4096;
constexpr std::size_t kMaxFiles = 4096;
/// How far into a compressed file samples are looked for.
constexpr std::int64_t kUnpackAtMost = 256 * 1024 * 1024;

std::int64_t big_endian(std::span<const std::uint8_t> head, std::size_t at) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | head[at + i];
  return out;
}

/// Every label of the first records is below its number of classes.
bool labels_fit(std::span<const std::uint8_t> head, std::int64_t record,
                std::span<const int> classes) {
  for (std::int64_t r = 0; r < kLabelsLookedAt; ++r) {
    for (std::size_t l = 0; l < classes.size(); ++l) {
      const std::size_t at = static_cast<std::size_t>(r * record) + l;
      if (at < head.size() && head[at] >= classes[l]) return false;
    }
  }
  return true;
}

bool is_cifar(std::span<const std::uint8_t> head, std::int64_t size, std::span<const int> classes,
              const char* name, RecordLayout& layout) {
  const auto labels = static_cast<std::int64_t>(classes.size());
  const std::int64_t record = labels + kCifarPixels;
  if (size < record || size % record != 0 || !labels_fit(head, record, classes)) return false;
  layout = {name, 0, record, labels, size / record, kCifarSide, kCifarSide, 3};
  return true;
}

RecordVerdict judge_idx(std::span<const std::uint8_t> head, std::int64_t size,
                        RecordLayout& layout) {
  const int dimensions = head[3];
  if (dimensions == 1) return RecordVerdict::kLabels;
  const std::int64_t header = 4 + 4 * dimensions;
  if (dimensions != 3 || static_cast<std::int64_t>(head.size()) < header)
    return RecordVerdict::kUnknown;
  const std::int64_t count = big_endian(head, 4), rows = big_endian(head, 8),
                     columns = big_endian(head, 12);
  if (count <= 0 || rows <= 0 || columns <= 0 || rows > kMaxIdxSide || columns > kMaxIdxSide)
    return RecordVerdict::kUnknown;
  const std::int64_t record = rows * columns;
  if (size >= 0 && size < header + count * record) return RecordVerdict::kTruncated;
  layout = {"idx", header, record, 0, count, static_cast<int>(columns), static_cast<int>(rows), 1};
  return RecordVerdict::kPictures;
}

bool named_like_a_test_set(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("test") || name.starts_with("t10k");
}

struct RecordFile {
  DataFile file;
  RecordLayout layout;
};

/// What became of the files, for the message when none is of use.
struct Verdicts {
  std::int64_t labels = 0, pickles = 0, truncated = 0, unknown = 0, unreadable = 0;
};

void judge(const DataFile& file, std::vector<RecordFile>& out, Verdicts& verdicts, DataSet& set) {
  UnpackedFile opened(file.path);
  std::vector<std::uint8_t> head(kHead);
  if (!opened.good()) {
    ++verdicts.unreadable;
    return;
  }
  head.resize(opened.read(head));
  RecordLayout layout;
  switch (judge_records(head, opened.plain() ? file.size.count() : -1, layout)) {
    case RecordVerdict::kPictures:
      out.push_back({file, layout});
      return;
    case RecordVerdict::kLabels:
      ++verdicts.labels;
      return;
    case RecordVerdict::kPickle:
      ++verdicts.pickles;
      return;
    case RecordVerdict::kTruncated:
      ++verdicts.truncated;
      set.diagnostics.add("truncated_records", Severity::kWarning,
                          "Files shorter than their header says were left out; fetch them again.");
      return;
    case RecordVerdict::kUnknown:
      ++verdicts.unknown;
      return;
  }
}

Error nothing_known(const Verdicts& v) {
  if (v.pickles > 0) {
    return {ErrorCode::kBadInput,
            "holds " + with_commas(v.pickles) +
                " pickles of Python (CIFAR's python version?), which only Python can read; probe "
                "the data set itself with stoker probe FILE.py:FUNCTION, or give the binary "
                "version",
            ""};
  }
  if (v.truncated > 0)
    return {ErrorCode::kBadInput,
            "its record files are shorter than their header says; fetch "
            "them again",
            ""};
  if (v.unreadable > 0)
    return {ErrorCode::kIo, "its record files cannot be opened; check their permissions", ""};
  if (v.labels > 0 && v.unknown == 0)
    return {ErrorCode::kBadInput, "holds labels only; give the folder with the pictures", ""};
  return {ErrorCode::kBadInput,
          "its binary files are neither CIFAR's nor idx (MNIST); probe your own pipeline: stoker "
          "probe FILE.py:FUNCTION",
          ""};
}

/// Loads `wanted` records spread over the file.
void load(const RecordFile& from, std::size_t wanted, const DataSetOptions& options, DataSet& set) {
  UnpackedFile file(from.file.path);
  const RecordLayout& layout = from.layout;
  std::vector<std::uint8_t> record(static_cast<std::size_t>(layout.record));
  const std::int64_t reachable =
      file.plain()
          ? layout.records
          : std::min(layout.records, std::max<std::int64_t>(1, kUnpackAtMost / layout.record));
  for (std::size_t i = 0; i < wanted && wall_time() < options.deadline; ++i) {
    const std::int64_t number =
        reachable * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(wanted);
    if (!file.seek(layout.header + number * layout.record) || file.read(record) != record.size()) {
      set.diagnostics.add("truncated_records", Severity::kWarning,
                          "Files shorter than their header says were read as far as possible; "
                          "fetch them again.");
      return;
    }
    DataSample sample;
    const Nanos start = thread_cpu_time();
    sample.content.assign(record.begin() + layout.label, record.end());
    sample.read = thread_cpu_time() - start;
    sample.bytes = Bytes(layout.record);
    sample.width = layout.width;
    sample.height = layout.height;
    sample.channels = layout.channels;
    set.samples.push_back(std::move(sample));
  }
}

/// Leaves the test set out where there is a training set beside it.
void keep_training_files(std::vector<RecordFile>& files, DataSet& set) {
  const auto test = [](const RecordFile& f) { return named_like_a_test_set(f.file.path); };
  if (std::all_of(files.begin(), files.end(), test)) return;
  const auto removed = std::erase_if(files, test);
  if (removed > 0) {
    set.diagnostics.add("test_records_left_out", Severity::kNote,
                        "Files named like a test set do not count among the samples.",
                        static_cast<std::int64_t>(removed));
  }
}

}  // namespace

RecordVerdict judge_records(std::span<const std::uint8_t> head, std::int64_t size,
                            RecordLayout& layout) {
  constexpr int kCifar10[] = {10};
  constexpr int kCifar100[] = {20, 100};  // coarse, fine
  if (head.size() < 4) return RecordVerdict::kUnknown;
  if (head[0] == 0 && head[1] == 0 && head[2] == 8 && head[3] >= 1 && head[3] <= 4)
    return judge_idx(head, size, layout);
  // Pickles of protocol 2 and later open with 0x80 and the protocol's number (PEP 307).
  if (head[0] == 0x80 && head[1] >= 2 && head[1] <= 5) return RecordVerdict::kPickle;
  if (is_cifar(head, size, kCifar10, "CIFAR-10 binary", layout) ||
      is_cifar(head, size, kCifar100, "CIFAR-100 binary", layout)) {
    return RecordVerdict::kPictures;
  }
  return RecordVerdict::kUnknown;
}

Status open_records(const DataSetOptions& options, DataSet& set) {
  std::vector<RecordFile> files;
  Verdicts verdicts;
  for (std::size_t i = 0; i < set.files.size() && i < kMaxFiles; ++i)
    judge(set.files[i], files, verdicts, set);
  if (files.empty()) return tl::unexpected(nothing_known(verdicts));
  if (verdicts.unknown > 0) {
    set.diagnostics.add("unknown_binaries", Severity::kNote,
                        "Binary files that are neither CIFAR's nor idx were left out.",
                        verdicts.unknown);
  }
  keep_training_files(files, set);
  std::sort(files.begin(), files.end(),
            [](const RecordFile& a, const RecordFile& b) { return a.file.path < b.file.path; });
  std::set<std::string> formats;
  std::int64_t records = 0, bytes = 0;
  for (const RecordFile& file : files) {
    formats.insert(file.layout.format);
    records += file.layout.records;
    bytes += file.file.size.count();
  }
  for (const RecordFile& file : files) {
    const double share = static_cast<double>(file.layout.records) / static_cast<double>(records);
    const auto wanted =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(options.samples)));
    load(file, std::min(wanted, options.samples - std::min(options.samples, set.samples.size())),
         options, set);
  }
  if (set.samples.empty())
    return wall_time() > options.deadline
               ? fail(ErrorCode::kBadInput, "no record was read in the time given",
                      mark(Setting::kBudget))
               : fail(ErrorCode::kBadInput,
                      "none of its records could be read; fetch the files again");
  DatasetFacts& facts = set.facts;
  const bool all = facts.files_exact && static_cast<std::int64_t>(set.files.size()) >= facts.files;
  // Where there are many files, only a sample of them was listed.
  const double factor = all ? 1
                            : std::max(1.0, static_cast<double>(facts.files_estimate) /
                                                static_cast<double>(set.files.size()));
  const auto scaled = [factor](std::int64_t n) {
    return std::llround(factor * static_cast<double>(n));
  };
  facts.files = scaled(static_cast<std::int64_t>(files.size()));
  facts.files_estimate = facts.files;
  facts.samples = scaled(records);
  facts.samples_exact = all;
  facts.total_bytes = Bytes(scaled(bytes));
  facts.mean_bytes = static_cast<double>(bytes) / static_cast<double>(files.size());
  set.format = *formats.begin();
  set.files.clear();
  for (RecordFile& file : files) set.files.push_back(std::move(file.file));
  return {};
}

}  // namespace stoker
