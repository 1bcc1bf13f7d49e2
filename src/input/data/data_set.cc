#include "input/data/data_set.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "input/data/records.h"
#include "input/data/tar_shards.h"
#include "input/data/text_lines.h"
#include "system/clocks.h"

namespace stoker {
namespace {

constexpr std::string_view kNames[kDataKinds] = {"pictures", "tar-shards", "records", "text"};
constexpr std::string_view kWords[kDataKinds] = {"picture", "picture", "picture", "line"};
constexpr FileKind kFilesOf[kDataKinds] = {FileKind::kPicture, FileKind::kTar, FileKind::kRecords,
                                           FileKind::kText};

const FilesOfKind& files_of(const FolderListing& listing, DataKind kind) {
  return listing.of(kFilesOf[static_cast<std::size_t>(kind)]);
}

/// What fills most bytes among images, shards and records; text only where there is none of
/// them, since labels and notes beside a data set are text too.
std::optional<DataKind> main_kind(const FolderListing& listing) {
  std::optional<DataKind> best;
  for (const DataKind kind : {DataKind::kPictures, DataKind::kTarShards, DataKind::kRecords}) {
    const FilesOfKind& files = files_of(listing, kind);
    if (files.count > 0 && (!best || files.total_bytes > files_of(listing, *best).total_bytes))
      best = kind;
  }
  if (!best && listing.of(FileKind::kText).count > 0) best = DataKind::kText;
  return best;
}

/// Files without a known ending may still be text ("train.en", "corpus.gz").
std::optional<DataKind> unnamed_text(FolderListing& listing) {
  FilesOfKind& others = listing.of(FileKind::kOther);
  if (others.sample.empty()) return std::nullopt;
  constexpr std::size_t kLookedAt = 8;
  const std::size_t n = std::min(kLookedAt, others.sample.size());
  const auto text =
      std::count_if(others.sample.begin(), others.sample.begin() + static_cast<std::ptrdiff_t>(n),
                    [](const DataFile& file) { return is_text_file(file.path); });
  if (2 * static_cast<std::size_t>(text) < n || text == 0) return std::nullopt;
  listing.of(FileKind::kText) = others;
  others = {};
  return DataKind::kText;
}

/// Where one more file of a folder of tiny and few kinds does no harm, nothing is said.
void note_other_kinds(const FolderListing& listing, DataKind chosen, Diagnostics& out) {
  constexpr std::array kAdvice = {
      "The folder holds pictures too, which were not probed; --kind pictures takes them.",
      "The folder holds tar archives too, which were not probed; --kind tar-shards takes them.",
      "The folder holds binary records too, which were not probed; --kind records takes them.",
      "The folder holds texts too, which were not probed; --kind text takes them."};
  for (std::size_t k = 0; k < kDataKinds; ++k) {
    const auto kind = static_cast<DataKind>(k);
    const std::int64_t count = files_of(listing, kind).count;
    if (kind != chosen && count > 0) out.add("other_data", Severity::kNote, kAdvice[k], count);
  }
}

void open_pictures(const DataSetOptions& options, DataSet& set) {
  Bytes total;
  for (const DataFile& file : set.files) {
    if (set.samples.size() >= options.samples) break;
    if (total + file.size > options.max_read) continue;
    total += file.size;
    DataSample sample;
    sample.path = file.path;
    sample.bytes = file.size;
    set.samples.push_back(std::move(sample));
  }
  set.facts.samples = set.facts.files_estimate;
  set.facts.samples_exact = set.facts.files_exact;
  set.format = "pictures";
}

Error nothing_of(const FolderListing& listing, const std::filesystem::path& path) {
  const bool file = listing.folders == 0;
  return {ErrorCode::kBadInput,
          file ? "is neither a picture, a tar archive, CIFAR or idx records nor text; probe your "
                 "own pipeline: stoker probe FILE.py:FUNCTION"
               : "holds no data that can be probed (found " + what_was_found(listing) +
                     "); give a folder with JPEG or PNG pictures, tar shards, CIFAR or idx "
                     "records, or text, or probe your own pipeline: stoker probe "
                     "FILE.py:FUNCTION",
          path.string()};
}

}  // namespace

std::string_view data_kind_name(DataKind kind) { return kNames[static_cast<std::size_t>(kind)]; }
std::string_view sample_word(DataKind kind) { return kWords[static_cast<std::size_t>(kind)]; }

std::optional<DataKind> data_kind_named(std::string_view name) {
  for (std::size_t k = 0; k < kDataKinds; ++k) {
    if (kNames[k] == name) return static_cast<DataKind>(k);
  }
  return std::nullopt;
}

Result<DataKind> kind_of_data(const std::filesystem::path& path) {
  auto listing = TRY(scan_folder(path, {.max_time = 2.0 * kSecond}));
  auto kind = main_kind(listing);
  if (!kind) kind = unnamed_text(listing);
  if (!kind) return tl::unexpected(nothing_of(listing, path));
  return *kind;
}

Result<DataSet> list_data_set(const std::filesystem::path& path, const DataSetOptions& options) {
  auto listing = TRY(scan_folder(path, options.scan));
  std::optional<DataKind> kind = options.kind ? options.kind : main_kind(listing);
  if (!kind || (*kind == DataKind::kText && files_of(listing, *kind).count == 0)) {
    const auto text = unnamed_text(listing);
    if (text) kind = text;
  }
  if (!kind) return tl::unexpected(nothing_of(listing, path));
  const FilesOfKind& files = files_of(listing, *kind);
  if (files.count == 0) {
    return fail(ErrorCode::kBadInput,
                "holds no files of the kind " + std::string(data_kind_name(*kind)) + " (found " +
                    what_was_found(listing) + "); name no kind to take what is there",
                path.string());
  }
  if (files.sample.empty()) {
    return fail(ErrorCode::kBadInput,
                "none of its " + with_commas(files.count) + " " +
                    std::string(data_kind_name(*kind)) +
                    " files can be used: they are empty or cannot be opened",
                path.string());
  }
  DataSet set;
  set.kind = *kind;
  set.diagnostics = listing.diagnostics;
  set.files = files.sample;
  set.entries_per_s = listing.entries_per_s;
  set.stat_us = listing.stat_us;
  set.facts = {.name = listing.name,
               .files = files.count,
               .files_exact = listing.complete,
               .files_estimate = static_cast<std::int64_t>(static_cast<double>(files.count) *
                                                           listing.beyond_listing),
               .total_bytes = files.total_bytes,
               .bytes_exact = files.sizes_exact,
               .mean_bytes = files.mean_bytes};
  note_other_kinds(listing, *kind, set.diagnostics);
  return set;
}

Status load_samples(const std::filesystem::path& path, const DataSetOptions& options,
                    DataSet& set) {
  Status loaded;
  switch (set.kind) {
    case DataKind::kPictures:
      open_pictures(options, set);
      break;
    case DataKind::kTarShards:
      loaded = open_tar_shards(options, set);
      break;
    case DataKind::kRecords:
      loaded = open_records(options, set);
      break;
    case DataKind::kText:
      loaded = open_text(options, set);
      break;
  }
  if (!loaded) loaded.error().where = path.string();
  return loaded;
}

PictureFault run_sample(const DataSample& sample, DataKind kind, ImagePipeline& pipeline,
                        Random& random, SampleRecord& record) {
  const std::span<const std::uint8_t> content(
      reinterpret_cast<const std::uint8_t*>(sample.content.data()), sample.content.size());
  switch (kind) {
    case DataKind::kPictures:
      return pipeline.run(sample.path, random, record);
    case DataKind::kTarShards: {
      const PictureFault fault = pipeline.run_content(content, sample.read, random, record);
      record.bytes = sample.bytes;
      return fault;
    }
    case DataKind::kRecords: {
      const PictureFault fault = pipeline.run_raw(
          {content, sample.width, sample.height, sample.channels}, sample.read, random, record);
      record.bytes = sample.bytes;
      return fault;
    }
    case DataKind::kText:
      break;
  }
  record = {};
  const Nanos start = thread_cpu_time();
  const LineCounts counts = split_lines(sample.content);
  record.stage[static_cast<std::size_t>(Stage::kDecode)] = thread_cpu_time() - start;
  record.stage[static_cast<std::size_t>(Stage::kRead)] = sample.read;
  record.bytes = sample.bytes;
  return counts.lines > 0 ? PictureFault::kNone : PictureFault::kEmpty;
}

}  // namespace stoker
