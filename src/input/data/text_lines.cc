#include "input/data/text_lines.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "input/data/unpacked_file.h"
#include "system/clocks.h"

namespace stoker {
namespace {

/// Text that is read to count lines and to keep blocks from.
constexpr std::int64_t kReadInAll = 64 * 1024 * 1024;
constexpr std::size_t kReadAtOnce = 256 * 1024;
/// A block of lines ends here too: a file without newlines must not become one block.
constexpr std::size_t kLongestBlock = 4 * 1024 * 1024;
constexpr std::size_t kTextHead = 4096;
/// Opening each file of a large set to see that it is text would take too long.
constexpr std::size_t kMostFilesSniffed = 512;
/// Share of control bytes above which something is no text.
constexpr double kMaxControl = 0.02;

/// What was read of the files so far.
struct TextSurvey {
  std::int64_t lines = 0;
  std::int64_t text_bytes = 0;    ///< unpacked
  std::int64_t packed_bytes = 0;  ///< of the files, that they came from
  std::int64_t packed_size = 0;   ///< of the files that hold text
  std::int64_t text_files = 0;
  bool whole = true, packed = false, plain = false;
};

/// Keeps a uniform sample of the blocks that pass by (Vitter's algorithm R).
class BlockKeeper {
 public:
  BlockKeeper(std::size_t wanted, std::uint64_t seed, std::vector<DataSample>& out)
      : wanted_(std::max<std::size_t>(1, wanted)), random_(seed), out_(out) {}

  void offer(std::string_view block, std::int64_t lines, double read_ns_per_byte,
             double packed_per_byte) {
    ++seen_;
    std::size_t slot = out_.size();
    if (slot >= wanted_) {
      slot = static_cast<std::size_t>(random_.below(static_cast<std::uint64_t>(seen_)));
      if (slot >= wanted_) return;
    } else {
      out_.emplace_back();
    }
    DataSample& sample = out_[slot];
    sample.content = block;
    sample.read = Nanos(read_ns_per_byte * static_cast<double>(block.size()));
    sample.bytes = Bytes(std::max<std::int64_t>(
        1, std::llround(packed_per_byte * static_cast<double>(block.size()))));
    sample.lines = lines;
  }

 private:
  std::size_t wanted_;
  Random random_;
  std::vector<DataSample>& out_;
  std::int64_t seen_ = 0;
};

/// Cuts what was read into blocks of lines; what follows the last newline stays in `rest`.
void cut_blocks(std::string& rest, bool at_end, double read_ns_per_byte, double packed_per_byte,
                TextSurvey& survey, BlockKeeper& keeper) {
  std::size_t begin = 0, lines = 0;
  const auto give = [&](std::size_t end) {
    keeper.offer(std::string_view(rest).substr(begin, end - begin),
                 static_cast<std::int64_t>(lines), read_ns_per_byte, packed_per_byte);
    survey.lines += static_cast<std::int64_t>(lines);
    begin = end;
    lines = 0;
  };
  for (std::size_t at = 0; at < rest.size();) {
    const std::size_t newline = rest.find('\n', at);
    if (newline == std::string::npos) break;
    at = newline + 1;
    if (++lines == kLinesPerBlock) give(at);
  }
  if (at_end || rest.size() - begin > kLongestBlock) {
    if (begin < rest.size()) {
      if (rest.back() != '\n') ++lines;
      give(rest.size());
    }
  }
  rest.erase(0, begin);
}

/// Where reading ends within a file: the whole lines that are left become a block, a part of a line
/// counts as one only where nothing else was seen. Returns the bytes that stay unused.
std::int64_t cut_short(std::string& rest, bool nothing_yet, double read_ns_per_byte,
                       double packed_per_byte, TextSurvey& survey, BlockKeeper& keeper) {
  std::size_t end = rest.rfind('\n') == std::string::npos ? 0 : rest.rfind('\n') + 1;
  auto lines = static_cast<std::int64_t>(
      std::count(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
  if (end == 0 && nothing_yet) end = rest.size(), lines = 1;
  if (end > 0) {
    keeper.offer(std::string_view(rest).substr(0, end), lines, read_ns_per_byte, packed_per_byte);
    survey.lines += lines;
  }
  return static_cast<std::int64_t>(rest.size() - end);
}

/// Reads at most `share` bytes of the unpacked file.
void look_into(const DataFile& file, std::int64_t share, const DataSetOptions& options,
               TextSurvey& survey, BlockKeeper& keeper, DataSet& set) {
  UnpackedFile opened(file.path);
  if (!opened.good()) {
    set.diagnostics.add("unreadable_text", Severity::kWarning,
                        "Texts that could not be opened were left out; check their permissions.");
    survey.whole = false;
    return;
  }
  ++survey.text_files;
  survey.packed_size += file.size.count();
  (opened.plain() ? survey.plain : survey.packed) = true;
  std::vector<std::uint8_t> buffer(kReadAtOnce);
  std::string rest;
  std::int64_t read = 0, unused = 0;
  const std::int64_t lines_before = survey.lines;
  double spent = 0;  // CPU ns
  for (bool more = true; more;) {
    const Nanos start = thread_cpu_time();
    const std::size_t got = opened.read(buffer);
    spent += (thread_cpu_time() - start).count();
    more = got > 0;
    rest.append(reinterpret_cast<const char*>(buffer.data()), got);
    read += static_cast<std::int64_t>(got);
    // Steps are uneven, since gzip unpacks into a buffer of its own: means over the file so far.
    const double bytes = std::max(1.0, static_cast<double>(read));
    const double packed =
        opened.plain() ? 1 : static_cast<double>(opened.packed_position()) / bytes;
    cut_blocks(rest, !more, spent / bytes, packed, survey, keeper);
    if (more && (read >= share || wall_time() > options.deadline)) {
      survey.whole = false;
      unused = cut_short(rest, survey.lines == lines_before, spent / bytes, packed, survey, keeper);
      break;
    }
  }
  if (opened.damaged()) {
    set.diagnostics.add("damaged_text", Severity::kWarning,
                        "Compressed texts that are damaged or end early were read as far as "
                        "possible; write them again.");
  }
  const std::int64_t used = read - unused;
  const double packed_share =
      read > 0 ? static_cast<double>(used) / static_cast<double>(read) : 1.0;
  survey.text_bytes += read;
  survey.packed_bytes +=
      opened.plain()
          ? std::min(used, file.size.count())
          : std::min(
                file.size.count(),
                std::max<std::int64_t>(
                    1, std::llround(packed_share * static_cast<double>(opened.packed_position()))));
}

}  // namespace

LineCounts split_lines(std::string_view block) {
  LineCounts counts;
  bool in_word = false;
  for (const char c : block) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    counts.words += !space && !in_word;
    in_word = !space;
    counts.lines += c == '\n';
  }
  if (!block.empty() && block.back() != '\n') ++counts.lines;
  return counts;
}

std::vector<std::int64_t> line_lengths(std::string_view block) {
  std::vector<std::int64_t> out;
  for (std::size_t at = 0; at < block.size();) {
    const std::size_t newline = block.find('\n', at);
    const std::size_t end = newline == std::string_view::npos ? block.size() : newline + 1;
    out.push_back(static_cast<std::int64_t>(end - at));
    at = end;
  }
  return out;
}

bool looks_like_text(std::string_view head) {
  if (head.empty()) return false;
  std::size_t control = 0;
  for (const char c : head) {
    if (c == '\0') return false;
    const auto byte = static_cast<unsigned char>(c);
    control += byte < 0x20 && c != '\n' && c != '\r' && c != '\t';
  }
  // Bytes that no UTF-8 holds (C0, C1, F5 ... FF) also betray binaries; a Latin-1 text has few.
  std::size_t never = 0;
  for (const char c : head) {
    const auto byte = static_cast<unsigned char>(c);
    never += byte == 0xC0 || byte == 0xC1 || byte >= 0xF5;
  }
  return static_cast<double>(control + never) <= kMaxControl * static_cast<double>(head.size());
}

bool is_text_file(const std::filesystem::path& path) {
  UnpackedFile file(path);
  std::string head(kTextHead, '\0');
  head.resize(file.read({reinterpret_cast<std::uint8_t*>(head.data()), head.size()}));
  return looks_like_text(head);
}

Status open_text(const DataSetOptions& options, DataSet& set) {
  const std::size_t before = set.files.size();
  std::erase_if(set.files, [&](const DataFile& file) {
    return before <= kMostFilesSniffed && wall_time() < options.deadline &&
           !is_text_file(file.path);
  });
  if (const std::size_t removed = before - set.files.size(); removed > 0) {
    set.diagnostics.add("not_text", Severity::kWarning,
                        "Files named like text that hold something else were left out.",
                        static_cast<std::int64_t>(removed));
  }
  if (set.files.empty())
    return fail(ErrorCode::kBadInput,
                "its text files hold no text; probe your own pipeline: stoker probe "
                "FILE.py:FUNCTION");
  TextSurvey survey;
  BlockKeeper keeper(options.samples, options.seed, set.samples);
  const std::int64_t budget = std::min(kReadInAll, options.max_read.count());
  std::int64_t files_left = static_cast<std::int64_t>(set.files.size());
  for (const DataFile& file : set.files) {
    if (survey.text_bytes >= budget || (survey.text_files > 0 && wall_time() > options.deadline)) {
      survey.whole = false;
      break;
    }
    const std::int64_t fair = (budget - survey.text_bytes) / files_left--;
    look_into(file, std::max<std::int64_t>(fair, kReadAtOnce), options, survey, keeper, set);
  }
  if (set.samples.empty())
    return fail(ErrorCode::kIo, "none of its texts could be read; check their permissions");
  DatasetFacts& facts = set.facts;
  facts.files -= static_cast<std::int64_t>(before - set.files.size());
  const bool all = survey.whole && facts.files_exact &&
                   static_cast<std::int64_t>(set.files.size()) == facts.files;
  const double factor =
      all ? 1
          : static_cast<double>(facts.total_bytes.count()) /
                static_cast<double>(std::max<std::int64_t>(1, survey.packed_bytes));
  facts.samples = std::max<std::int64_t>(
      1, std::llround(static_cast<double>(survey.lines) * std::max(1.0, factor)));
  facts.samples_exact = all;
  set.format = survey.packed ? (survey.plain ? "lines of text, partly gzip" : "lines of text, gzip")
                             : "lines of text";
  return {};
}

}  // namespace stoker
