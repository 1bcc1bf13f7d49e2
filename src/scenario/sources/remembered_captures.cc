#include "scenario/sources/remembered_captures.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "step/step_reader.h"

namespace stoker {
namespace fs = std::filesystem;
namespace {

/// As much as a capture reads to make a checksum: sources.py, LARGEST.
constexpr Bytes kLargestSource{64LL << 20};

/// Whether a folder has the names that it had, but for what Python keeps there itself.
bool lists_the_same(const CaptureSource& source) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(source.path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name != "__pycache__") names.push_back(std::move(name) + "\n");
    if (static_cast<std::int64_t>(names.size()) > source.bytes) return false;
  }
  if (error || static_cast<std::int64_t>(names.size()) != source.bytes) return false;
  std::sort(names.begin(), names.end());
  return source.crc32 == crc32_of(std::accumulate(names.begin(), names.end(), std::string()));
}

bool is_the_same(const CaptureSource& source) {
  std::error_code error;
  if (source.kind == SourceKind::kAbsent) return !fs::exists(source.path, error);
  if (source.kind == SourceKind::kFolder) return lists_the_same(source);
  const auto size = fs::file_size(source.path, error);
  if (error || static_cast<std::int64_t>(size) != source.bytes) return false;
  if (!source.crc32) return true;
  const auto content = read_file(source.path, kLargestSource);
  return content && crc32_of(*content) == *source.crc32;
}

bool is_the_same(const std::string& variable, const std::optional<std::uint32_t>& crc32) {
  const char* value = std::getenv(variable.c_str());
  return value == nullptr ? !crc32.has_value() : crc32 == crc32_of(value);
}

/// Since 1970, of a file's last change.
std::int64_t seconds_of(fs::file_time_type time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

}  // namespace

Result<fs::path> captures_folder() {
  fs::path folder = cache_folder() / "steps";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::kIo, "cannot be made: " + error.message() + "; set XDG_CACHE_HOME",
                folder.string());
  }
  return folder;
}

fs::path remembered_capture(const CaptureOrder& order, const std::string& interpreter) {
  const std::string precision(capture_precision(order.precision));
  const std::size_t colon = order.spec.rfind(':');
  std::string text = order.spec + "|" + precision + "|" + order.mode + "|" + interpreter;
  const fs::path file = order.spec.substr(0, colon);
  std::error_code ignored;
  if (file.extension() == ".py") text += "|" + fs::absolute(file, ignored).string();
  if (order.spec.starts_with("hf:")) {  // a folder of that name decides before the hub does
    const fs::path folder = fs::absolute(order.spec.substr(colon + 1), ignored);
    if (fs::exists(folder, ignored)) text += "|" + folder.string();
  }
  if (order.adapters.any())
    text += "|" + order.adapters.lora + (order.adapters.four_bit ? "|nf4" : "");
  for (const std::string& assumption : order.assumptions) text += "|" + assumption;
  std::string name;
  for (const char c : order.spec.substr(colon + 1))
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  name += "-" + precision + "-" + std::to_string(fnv1a(text));
  if (order.device == ModelDevice::kCpu) name += "-cpu";
  if (order.compile) name += "-compiled";
  return cache_folder() / "steps" / (name + ".step.gz");
}

std::vector<std::string> changed_since(const Provenance& provenance) {
  std::vector<std::string> changed;
  for (const CaptureSource& source : provenance.sources) {
    if (!is_the_same(source)) changed.push_back(fs::path(source.path).filename().string());
  }
  for (const auto& [variable, crc32] : provenance.environment) {
    if (!is_the_same(variable, crc32)) changed.push_back("$" + variable);
  }
  return changed;
}

std::optional<Step> recall_capture(const fs::path& path) {
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  if (error) return std::nullopt;
  auto step = read_step_file(path);
  // Without sources nobody can tell what it was made from.
  if (!step || step->provenance.sources.empty()) return std::nullopt;
  if (!changed_since(step->provenance).empty()) return std::nullopt;
  step->provenance.captured_at = seconds_of(written);
  return std::move(*step);
}

}  // namespace stoker
