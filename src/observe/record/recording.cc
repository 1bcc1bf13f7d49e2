#include "observe/record/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "observe/record/block.h"
#include "observe/record/facts_json.h"
#include "observe/record/sample_block.h"

namespace stoker {
namespace {

/// What is lost when the watch itself is killed.
constexpr std::int64_t kBlockNanos = 5'000'000'000;
constexpr Bytes kMostRecording{std::int64_t{4} << 30};

using record::Block;
using record::BlockKind;

/// The parts of a recording as its blocks are read.
class Reader {
 public:
  Reader(const RecordingEvents& events, RecordingSummary& summary)
      : events_(events), summary_(summary) {}

  /// False: the content is none of its kind.
  bool take(const Block& block) {
    switch (block.kind) {
      case BlockKind::kFacts:
        return take_facts(block.content);
      case BlockKind::kProcesses:
        return take_processes(block.content);
      case BlockKind::kSamples:
        return take_samples(block.content);
      case BlockKind::kEnd:
        summary_.end = block.content.substr(0, 200);
        return true;
    }
    return true;  // a kind that a later minor version added
  }

 private:
  bool take_facts(const std::string& content) {
    const auto facts = record::facts_from_json(content);
    if (!facts) return false;
    summary_.facts = *facts;
    if (events_.facts) events_.facts(*facts);
    return true;
  }

  bool take_processes(const std::string& content) {
    const auto processes = record::processes_from_json(content);
    if (!processes) return false;
    constexpr std::uint32_t kMostProcesses = 1 << 22;
    std::vector<ProcessFacts> sane;
    for (const ProcessFacts& p : *processes) {
      if (p.serial == 0 || p.serial > kMostProcesses) continue;
      if (summary_.processes.size() < p.serial) summary_.processes.resize(p.serial);
      summary_.processes[p.serial - 1] = p;
      sane.push_back(p);
    }
    if (events_.processes) events_.processes(sane);
    return true;
  }

  bool take_samples(const std::string& content) {
    const auto samples = record::decode_samples(content);
    if (!samples) return false;
    summary_.samples += static_cast<std::int64_t>(samples->size());
    for (const Sample& sample : *samples) {
      if (events_.sample) events_.sample(sample);
    }
    return true;
  }

  const RecordingEvents& events_;
  RecordingSummary& summary_;
};

}  // namespace

Result<RecordingWriter> RecordingWriter::create(const std::filesystem::path& path,
                                                const WatchFacts& facts) {
  const int handle = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (handle < 0) {
    const std::string why =
        errno == EEXIST ? std::string(kNeverOver) : std::string(std::strerror(errno));
    return fail(ErrorCode::kIo, why, path.string());
  }
  RecordingWriter writer(handle);
  writer.write(std::string(record::kFileMark) +
               record::framed(BlockKind::kFacts, record::to_json(facts)));
  if (!writer.failure_.empty()) return fail(ErrorCode::kIo, writer.failure_, path.string());
  return writer;
}

RecordingWriter::RecordingWriter(RecordingWriter&& other) noexcept
    : handle_(std::exchange(other.handle_, -1)),
      waiting_(std::move(other.waiting_)),
      failure_(std::move(other.failure_)),
      bytes_(other.bytes_) {}

RecordingWriter::~RecordingWriter() {
  if (handle_ >= 0) ::close(handle_);
}

void RecordingWriter::write(std::string_view bytes) {
  while (!bytes.empty() && failure_.empty()) {
    const ssize_t written = ::write(handle_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failure_ = std::strerror(errno);
      return;
    }
    bytes_ += written;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void RecordingWriter::flush() {
  if (waiting_.empty()) return;
  write(record::framed(BlockKind::kSamples, record::encode_samples(waiting_)));
  waiting_.clear();
}

void RecordingWriter::add(const std::vector<ProcessFacts>& changed) {
  if (changed.empty() || !failure_.empty()) return;
  flush();
  write(record::framed(BlockKind::kProcesses, record::to_json(changed)));
}

void RecordingWriter::add(const Sample& sample) {
  if (!failure_.empty()) return;
  waiting_.push_back(sample);
  if (sample.at_ns - waiting_.front().at_ns >= kBlockNanos) flush();
}

void RecordingWriter::end(std::string_view how) {
  flush();
  write(record::framed(BlockKind::kEnd, how));
}

bool is_recording(std::string_view first_bytes) {
  return first_bytes.starts_with(record::kFileMarkStem);
}

Result<RecordingSummary> read_recording(const std::filesystem::path& path,
                                        const RecordingEvents& events) {
  const std::string bytes = TRY(read_file(path, kMostRecording));
  return parse_recording(bytes, path.string(), events);
}

Result<RecordingSummary> parse_recording(std::string_view bytes, const std::string& where,
                                         const RecordingEvents& events) {
  if (!is_recording(bytes) && !record::kFileMark.starts_with(bytes))
    return fail(ErrorCode::kBadInput, "is no recording of `stoker watch -o`", where);
  if (bytes.size() < record::kFileMark.size())
    return fail(ErrorCode::kBadInput, "was cut within its first line; record again", where);
  if (!bytes.starts_with(record::kFileMark)) {
    const std::string_view rest = bytes.substr(record::kFileMarkStem.size());
    const std::string version(rest.substr(0, std::min<std::size_t>(rest.find('\n'), 8)));
    const bool number =
        !version.empty() && version != "0" &&
        std::ranges::all_of(version, [](unsigned char c) { return std::isdigit(c); });
    if (!number) return fail(ErrorCode::kBadInput, "its first line is damaged", where);
    return fail(ErrorCode::kTooNew,
                "is a recording of version " + version + ", this program reads 1; update stoker",
                where);
  }
  RecordingSummary summary;
  Reader reader(events, summary);
  record::BlockReader blocks(bytes.substr(record::kFileMark.size()));
  while (const auto block = blocks.next()) {
    if (!reader.take(*block))
      summary.damaged_bytes += static_cast<std::int64_t>(block->content.size());
  }
  summary.damaged_bytes += static_cast<std::int64_t>(blocks.damaged());
  summary.cut_bytes = static_cast<std::int64_t>(blocks.cut());
  return summary;
}

}  // namespace stoker
