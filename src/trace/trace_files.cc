#include "trace/trace_files.h"

#include <algorithm>
#include <filesystem>

#include "base/tar_reader.h"
#include "base/text.h"
#include "trace/event_reader.h"

namespace stoker {
namespace {

/// More files are no job's ranks: a wrong path must not be read for hours.
constexpr std::size_t kMostTraces = 4096;

bool named_as_trace(std::string_view name) {
  return name.ends_with(".json") || name.ends_with(".json.gz");
}

Error too_many(const std::string& where) {
  return {ErrorCode::kBadInput,
          "holds more than " + with_commas(kMostTraces) + " traces; name a folder of one run",
          where};
}

template <class Iterator>
Result<std::vector<std::string>> traces_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  const auto skip = std::filesystem::directory_options::skip_permission_denied;
  for (Iterator at(folder, skip, error); !error && at != Iterator(); at.increment(error)) {
    std::error_code unreadable;
    if (!named_as_trace(at->path().filename().string()) || !at->is_regular_file(unreadable))
      continue;
    found.push_back(at->path().string());
    if (found.size() > kMostTraces) return tl::unexpected(too_many(folder));
  }
  if (error) return fail(ErrorCode::kIo, "cannot be listed: " + error.message(), folder);
  std::ranges::sort(found);
  return found;
}

Result<std::vector<std::string>> traces_of_folder(const std::string& folder) {
  auto found = TRY(traces_in<std::filesystem::directory_iterator>(folder));
  if (found.empty()) found = TRY(traces_in<std::filesystem::recursive_directory_iterator>(folder));
  if (found.empty()) return fail(ErrorCode::kBadInput, "holds no trace (.json, .json.gz)", folder);
  return found;
}

Status each_of_archive(const std::string& path, const TakeTrace& take) {
  TarReader archive(path);
  if (!archive.readable()) return fail(ErrorCode::kIo, "cannot be opened", path);
  if (!archive.is_tar()) return fail(ErrorCode::kBadInput, "is no tar archive", path);
  std::size_t traces = 0;
  TarReader::Step step = TarReader::Step::kMember;
  while ((step = archive.next()) == TarReader::Step::kMember) {
    const std::string name = archive.name();
    // What starts with "._" holds attributes of a file on another system.
    const std::string base = std::filesystem::path(name).filename().string();
    if (!named_as_trace(base) || base.starts_with("._")) {
      if (!archive.skip([] { return false; })) break;
      continue;
    }
    if (++traces > kMostTraces) return tl::unexpected(too_many(path));
    if (archive.size() > kMostTrace.count()) {
      take(name, fail(ErrorCode::kBadInput, "is larger than " + human_bytes(kMostTrace), name));
      if (!archive.skip([] { return false; })) break;
      continue;
    }
    std::string packed;
    const bool whole = archive.read(packed);
    Result<Unpacked> content = unpacked(std::move(packed), name, kMostTrace);
    if (content && !whole) content->cut = true;
    take(name, std::move(content));
    if (!whole) break;
  }
  if (traces == 0)
    return fail(ErrorCode::kBadInput,
                step == TarReader::Step::kEnd
                    ? "holds no trace (.json, .json.gz)"
                    : "is damaged or no tar archive: no trace could be read from it",
                path);
  return {};
}

}  // namespace

bool named_as_archive(const std::string& path) {
  return path.ends_with(".tar") || path.ends_with(".tar.gz") || path.ends_with(".tgz");
}

Status each_trace(const std::vector<std::string>& paths, const TakeTrace& take) {
  for (const std::string& path : paths) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      const auto files = TRY(traces_of_folder(path));
      for (const std::string& file : files) take(file, read_unpacked(file, kMostTrace));
    } else if (named_as_archive(path)) {
      TRY(each_of_archive(path, take));
    } else {
      take(path, read_unpacked(path, kMostTrace));
    }
  }
  return {};
}

}  // namespace stoker
