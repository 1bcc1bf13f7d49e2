#include "input/data/folder_scan.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/random.h"
#include "base/setting.h"
#include "base/text.h"
#include "input/data/image_pipeline.h"
#include "system/clocks.h"

namespace stoker {
namespace {

/// Endings that are counted one by one; a folder of random names must not fill memory.
constexpr std::size_t kMaxEndings = 64;

/// Walks the tree with its own stack.
class Walk {
 public:
  Walk(const FolderScanOptions& options, FolderListing& listing)
      : options_(options), listing_(listing), random_(options.seed), start_(wall_time()) {}

  void run(const std::filesystem::path& root) {
    enter(root);
    while (!pending_.empty() && listing_.complete) {
      const std::filesystem::path folder = std::move(pending_.back());
      pending_.pop_back();
      list(folder);
    }
    if (!listing_.complete) cut_off();
    const double spent = seconds(wall_time() - start_);
    if (spent > 0) listing_.entries_per_s = static_cast<double>(entries_) / spent;
  }

  void take_file(const std::filesystem::path& folder, std::string_view name) {
    const FileKind kind = file_kind(name);
    if (kind == FileKind::kOther) count_ending(file_ending(name));
    FilesOfKind& files = listing_.of(kind);
    ++files.count;
    keep(kind, files.count, folder, name);
  }

  std::vector<std::filesystem::path>& kept(FileKind kind) {
    return kept_[static_cast<std::size_t>(kind)];
  }

 private:
  void enter(const std::filesystem::path& folder) {
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) return unreadable();
    // A symbolic link back into the tree leads to a folder that is known already.
    if (seen_.insert({info.st_dev, info.st_ino}).second) pending_.push_back(folder);
  }

  void unreadable() {
    listing_.diagnostics.add(
        "unreadable_folder", Severity::kWarning,
        "Folders that could not be opened were left out; check their permissions.");
  }

  void cut_off() {
    listing_.diagnostics.add(
        "listing_cut_off", Severity::kWarning,
        "The folder holds more entries than were listed: counts are lower bounds, totals are "
        "estimates. Listing goes on for longer with a larger budget of time.");
    // Folders that are known but not listed hold as much as those that were, on average. A single
    // folder says nothing about what is left of it.
    const auto known = static_cast<double>(seen_.size());
    const auto listed = static_cast<double>(listing_.folders);
    if (listing_.folders > 1 && known > listed) listing_.beyond_listing = known / listed;
  }

  void list(const std::filesystem::path& folder) {
    DIR* handle = ::opendir(folder.c_str());
    if (handle == nullptr) return unreadable();
    ++listing_.folders;
    while (const dirent* entry = ::readdir(handle)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      ++entries_;
      if (entries_ > options_.max_entries ||
          (entries_ % 1024 == 0 && wall_time() - start_ > options_.max_time)) {
        listing_.complete = false;
        break;
      }
      take(folder, *entry, name);
    }
    ::closedir(handle);
  }

  void take(const std::filesystem::path& folder, const dirent& entry, std::string_view name) {
    unsigned char type = entry.d_type;
    if (type == DT_LNK || type == DT_UNKNOWN) {
      struct stat info {};
      if (::stat((folder / name).c_str(), &info) != 0) {
        listing_.diagnostics.add("broken_link", Severity::kNote,
                                 "Symbolic links that lead nowhere were left out.");
        return;
      }
      type = S_ISDIR(info.st_mode) ? DT_DIR : S_ISREG(info.st_mode) ? DT_REG : DT_CHR;
    }
    if (type == DT_DIR) return enter(folder / name);
    if (type == DT_REG) return take_file(folder, name);
    listing_.diagnostics.add("special_file", Severity::kNote,
                             "Pipes, sockets and devices were left out; a loader that opens them "
                             "waits for ever.");
  }

  void count_ending(const std::string& ending) {
    if (listing_.endings.size() < kMaxEndings || listing_.endings.contains(ending))
      ++listing_.endings[ending];
  }

  void keep(FileKind kind, std::int64_t count, const std::filesystem::path& folder,
            std::string_view name) {
    std::vector<std::filesystem::path>& paths = kept(kind);
    if (paths.size() < options_.sample) {
      paths.push_back(folder / name);
      return;
    }
    const std::uint64_t slot = random_.below(static_cast<std::uint64_t>(count));
    if (slot < paths.size()) paths[slot] = folder / name;
  }

  const FolderScanOptions& options_;
  FolderListing& listing_;
  Random random_;
  Nanos start_;
  std::int64_t entries_ = 0;
  std::set<std::pair<dev_t, ino_t>> seen_;
  std::vector<std::filesystem::path> pending_;
  /// Uniform samples (Vitter's algorithm R).
  std::array<std::vector<std::filesystem::path>, kFileKinds> kept_;
};

/// Asks the sampled files for their sizes and works the totals out.
void measure_sizes(std::vector<std::filesystem::path>& paths, FileKind kind,
                   FolderListing& listing) {
  FilesOfKind& files = listing.of(kind);
  double sum = 0;
  for (std::filesystem::path& path : paths) {
    struct stat info {};
    // Nobody wants to hear that files which are no data are empty or gone.
    const auto complain = [&](PictureFault fault) {
      if (kind != FileKind::kOther)
        listing.diagnostics.add(fault_name(fault), Severity::kWarning, fault_advice(fault));
    };
    if (::stat(path.c_str(), &info) != 0) {
      complain(errno == ENOENT ? PictureFault::kVanished : PictureFault::kUnreadable);
    } else if (info.st_size == 0) {
      complain(PictureFault::kEmpty);
    } else {
      sum += static_cast<double>(info.st_size);
      files.sample.push_back({std::move(path), Bytes(info.st_size)});
    }
  }
  const auto asked = static_cast<double>(paths.size());
  files.sizes_exact = listing.complete && static_cast<std::int64_t>(paths.size()) == files.count;
  if (files.sample.empty()) return;
  files.mean_bytes = sum / static_cast<double>(files.sample.size());
  const double scale = static_cast<double>(files.count) / asked * listing.beyond_listing;
  files.total_bytes = Bytes(static_cast<std::int64_t>(std::llround(sum * scale)));
}

void shuffle(std::vector<DataFile>& files, std::uint64_t seed) {
  // readdir's order differs between file systems: sort first, so that the seed alone decides.
  std::sort(files.begin(), files.end(),
            [](const DataFile& a, const DataFile& b) { return a.path < b.path; });
  Random random(seed);
  for (std::size_t i = files.size(); i > 1; --i) std::swap(files[i - 1], files[random.below(i)]);
}

}  // namespace

std::string what_was_found(const FolderListing& listing) {
  constexpr std::size_t kShown = 4;
  std::vector<std::pair<std::int64_t, std::string>> found;
  std::int64_t others = listing.of(FileKind::kOther).count;
  for (const auto& [ending, count] : listing.endings) {
    if (!ending.empty()) found.emplace_back(count, "." + ending);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (found.size() > kShown) found.resize(kShown);
  for (const auto& [count, ending] : found) others -= count;
  if (others > 0) found.emplace_back(others, "other");
  std::string out;
  for (const auto& [count, what] : found) {
    out += (out.empty() ? "" : ", ") + with_commas(count) + " " + what +
           (count == 1 ? " file" : " files");
  }
  return out.empty() ? "no files" : out;
}

Result<FolderListing> scan_folder(const std::filesystem::path& folder,
                                  const FolderScanOptions& options) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    if (folder.string().find(":/") != std::string::npos)
      return fail(ErrorCode::kNotFound,
                  "is an address, not a path; probe a copied part of the data and say where all of "
                  "it will lie: " +
                      mark(Setting::kStorage) + " s3",
                  folder.string());
    if (errno == ENOENT)
      return fail(ErrorCode::kNotFound, "no such file or folder; check the path", folder.string());
    return fail(ErrorCode::kIo, std::string("cannot be opened: ") + std::strerror(errno),
                folder.string());
  }
  if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kBadInput,
                "is neither a folder nor a file; give the folder that holds the data",
                folder.string());
  }
  FolderListing listing;
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(folder, ignored);
  listing.name = whole.has_filename() ? whole.filename().string() : folder.string();
  Walk walk(options, listing);
  if (S_ISREG(info.st_mode)) {
    walk.take_file(folder.parent_path(), folder.filename().string());
  } else {
    walk.run(folder);
    if (listing.folders == 0)
      return fail(ErrorCode::kIo, "cannot be listed; check its permissions", folder.string());
  }
  const Nanos start = wall_time();
  std::size_t asked = 0;
  for (std::size_t k = 0; k < kFileKinds; ++k) {
    const auto kind = static_cast<FileKind>(k);
    asked += walk.kept(kind).size();
    measure_sizes(walk.kept(kind), kind, listing);
  }
  if (asked > 0)
    listing.stat_us = 1e3 * milliseconds(wall_time() - start) / static_cast<double>(asked);
  for (FilesOfKind& files : listing.kinds) shuffle(files.sample, options.seed);
  return listing;
}

}  // namespace stoker
