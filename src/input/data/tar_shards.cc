#include "input/data/tar_shards.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/setting.h"
#include "base/tar_reader.h"
#include "base/text.h"
#include "system/clocks.h"

namespace stoker {
namespace {

constexpr std::size_t kMaxShards = 8;
/// Tar's unit: a header is one, data is rounded up to it (POSIX.1-1988, ustar).
constexpr std::int64_t kTarBlock = 512;
constexpr std::int64_t kMaxMember = 256 * 1024 * 1024;
/// Images kept in memory at most, whatever their number.
constexpr std::int64_t kMaxKept = 256 * 1024 * 1024;

bool is_picture(std::string_view member) { return file_kind(member) == FileKind::kPicture; }

/// What was seen of the shards so far.
class Survey {
 public:
  Survey(const DataSetOptions& options, DataSet& set, std::size_t shards)
      : options_(options),
        set_(set),
        wanted_((options.samples + shards - 1) / shards),
        shards_left_(static_cast<std::int64_t>(shards)) {}

  void look_into(const DataFile& file);

  std::int64_t samples = 0, with_picture = 0;
  std::int64_t seen_bytes = 0;  ///< of the shards' files, that `samples` came from
  bool whole = true;            ///< every shard was followed to its end
  std::map<std::string, std::int64_t> endings;

 private:
  bool visit(TarReader& shard, const DataFile& file);
  bool pass_over(TarReader& shard) const {
    return shard.skip([this] { return wall_time() > deadline_; });
  }

  const DataSetOptions& options_;
  DataSet& set_;
  std::size_t wanted_;  ///< samples to load from one shard
  std::int64_t shards_left_;
  std::int64_t read_ = 0;  ///< bytes of all shards; what was sought over is not read
  std::int64_t kept_ = 0;
  // Where the reader stands in the shard that is being read:
  std::string key_;
  bool key_has_picture_ = false;
  std::size_t loaded_ = 0;
  Nanos deadline_;  ///< its share of the time
};

/// One member; false ends the shard.
bool Survey::visit(TarReader& shard, const DataFile& file) {
  const std::string_view key = tar_key(shard.name());
  if (samples == 0 || key != key_) {
    key_ = key;
    key_has_picture_ = false;
    ++samples;
  }
  if (!is_picture(shard.name())) {
    if (endings.size() < 64) ++endings[file_ending(shard.name())];
    return pass_over(shard);
  }
  if (!key_has_picture_) ++with_picture;
  const std::int64_t size = shard.size();
  // Evenly over the shard's length: archives are often sorted by class.
  const double due = static_cast<double>(loaded_) / static_cast<double>(wanted_) *
                     static_cast<double>(file.size.count());
  const bool take = !key_has_picture_ && loaded_ < wanted_ && size > 0 && size <= kMaxMember &&
                    kept_ + size <= kMaxKept && static_cast<double>(shard.position()) >= due;
  key_has_picture_ = true;
  if (size <= 0 || size > kMaxMember) {
    const PictureFault fault = size <= 0 ? PictureFault::kEmpty : PictureFault::kFileTooBig;
    set_.diagnostics.add(fault_name(fault), Severity::kWarning, fault_advice(fault));
  }
  if (!take) return pass_over(shard);
  DataSample sample;
  const Nanos start = thread_cpu_time();
  if (!shard.read(sample.content)) return false;
  sample.read = thread_cpu_time() - start;
  sample.bytes = Bytes(kTarBlock + (size + kTarBlock - 1) / kTarBlock * kTarBlock);
  kept_ += size;
  ++loaded_;
  set_.samples.push_back(std::move(sample));
  return true;
}

void Survey::look_into(const DataFile& file) {
  TarReader shard(file.path);
  if (!shard.readable() || !shard.is_tar()) {
    whole = false;
    set_.diagnostics.add(shard.readable() ? "not_a_tar" : "unreadable_shard", Severity::kWarning,
                         shard.readable()
                             ? "Files named like tar archives hold something else; left out."
                             : "Shards that could not be opened were left out; check their "
                               "permissions.");
    return;
  }
  key_.clear();
  loaded_ = 0;
  const std::int64_t left = shards_left_--;
  const Nanos now = wall_time();
  deadline_ = now + (options_.deadline - now) / static_cast<double>(left);
  const std::int64_t may_read = read_ + (options_.max_read.count() - read_) / left;
  TarReader::Step step = TarReader::Step::kMember;
  while (wall_time() < deadline_ && read_ < may_read) {
    const std::int64_t from = shard.position();
    const Nanos start = thread_cpu_time();
    step = shard.next();
    const Nanos header = thread_cpu_time() - start;
    if (step != TarReader::Step::kMember) break;
    const std::size_t before = set_.samples.size();
    if (!visit(shard, file)) {
      step = TarReader::Step::kDamaged;
      break;
    }
    const bool kept = set_.samples.size() > before;
    if (kept) set_.samples.back().read += header;
    // Passed over by a seek, a member costs the block that its header lies in.
    const std::int64_t passed = shard.position() - from;
    read_ += kept || shard.compressed()
                 ? passed
                 : std::min<std::int64_t>(passed, static_cast<std::int64_t>(TarReader::kReadBlock));
  }
  if (step == TarReader::Step::kDamaged) {
    set_.diagnostics.add("damaged_shard", Severity::kWarning,
                         "Shards that end early or are damaged were read as far as possible; a "
                         "loader would raise there. Write them again.");
  }
  if (step == TarReader::Step::kEnd) {
    seen_bytes += file.size.count();
  } else {
    whole = false;
    seen_bytes += std::min(file.size.count(), shard.position());
  }
}

std::string endings_text(const std::map<std::string, std::int64_t>& endings) {
  std::string out;
  for (const auto& [ending, count] : endings) {
    if (out.size() > 60) break;
    out += (out.empty() ? "" : ", ") + with_commas(count) + " ." + (ending.empty() ? "?" : ending);
  }
  return out.empty() ? "no files" : out;
}

}  // namespace

std::string_view tar_key(std::string_view member) {
  const std::size_t slash = member.rfind('/');
  const std::size_t from = slash == std::string_view::npos ? 0 : slash + 1;
  // A dot at the very front hides a file and starts no ending.
  const std::size_t dot = member.find('.', from + 1);
  return member.substr(0, dot);
}

Status open_tar_shards(const DataSetOptions& options, DataSet& set) {
  const std::size_t shards = std::min(kMaxShards, set.files.size());
  Survey survey(options, set, std::max<std::size_t>(1, shards));
  for (std::size_t i = 0; i < shards; ++i) {
    if (i > 0 && wall_time() > options.deadline) {
      survey.whole = false;
      break;
    }
    survey.look_into(set.files[i]);
  }
  if (set.samples.empty() && wall_time() > options.deadline && survey.samples == 0)
    return fail(ErrorCode::kBadInput, "no picture of its tar archives was read in the time given",
                mark(Setting::kBudget));
  if (set.samples.empty()) {
    const bool members = survey.samples > 0;
    return fail(ErrorCode::kBadInput,
                members ? "its tar archives hold no JPEG or PNG pictures (found " +
                              endings_text(survey.endings) +
                              "); probe your own pipeline: stoker probe FILE.py:FUNCTION"
                        : "its tar archives are empty, damaged or no tar archives; write them "
                          "again");
  }
  DatasetFacts& facts = set.facts;
  const bool all =
      survey.whole && shards == static_cast<std::size_t>(facts.files) && facts.files_exact;
  const double factor =
      all || survey.seen_bytes <= 0
          ? 1
          : static_cast<double>(facts.total_bytes.count()) / static_cast<double>(survey.seen_bytes);
  facts.samples_exact = all;
  facts.samples = std::max<std::int64_t>(
      1, std::llround(static_cast<double>(survey.samples) * std::max(1.0, factor)));
  if (survey.samples > survey.with_picture) {
    set.diagnostics.add("samples_without_picture", Severity::kNote,
                        "Samples of the shards that hold no JPEG or PNG picture were not measured.",
                        survey.samples - survey.with_picture);
  }
  set.format = "tar of pictures";
  return {};
}

}  // namespace stoker
