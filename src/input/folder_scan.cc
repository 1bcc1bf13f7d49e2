#include "input/folder_scan.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "input/image_pipeline.h"
#include "input/random.h"

namespace stoker {
namespace {

/// What torchvision's ImageFolder takes besides JPEG, and GIF.
constexpr std::string_view kOtherPictures[] = {"png", "bmp",  "webp", "gif",
                                               "tif", "tiff", "ppm",  "pgm"};
constexpr std::string_view kJpegs[] = {"jpg", "jpeg", "jpe", "jfif"};

/// Lower-case extension without its dot.
std::string extension(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.size() - dot > 6) return {};
  std::string out(name.substr(dot + 1));
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

template <std::size_t n>
bool contains(const std::string_view (&list)[n], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

/// Walks the tree with its own stack; keeps a reservoir of picture paths (Vitter's algorithm R).
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
    if (!listing_.complete) {
      listing_.diagnostics.add(
          "listing_cut_off", Severity::kWarning,
          "The folder holds more entries than were listed: counts are lower bounds.");
    }
  }

  std::vector<std::filesystem::path> take_reservoir() { return std::move(reservoir_); }

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
    if (type != DT_REG) return;  // sockets, pipes and devices would block a reader
    const std::string ending = extension(name);
    if (contains(kJpegs, ending)) {
      ++listing_.jpeg_files;
      keep(folder, name);
    } else if (contains(kOtherPictures, ending)) {
      ++listing_.other_pictures[ending];
    } else {
      ++listing_.other_files;
    }
  }

  void keep(const std::filesystem::path& folder, std::string_view name) {
    if (reservoir_.size() < options_.sample) {
      reservoir_.push_back(folder / name);
      return;
    }
    const std::uint64_t slot = random_.below(static_cast<std::uint64_t>(listing_.jpeg_files));
    if (slot < reservoir_.size()) reservoir_[slot] = folder / name;
  }

  const FolderScanOptions& options_;
  FolderListing& listing_;
  Random random_;
  Nanos start_;
  std::int64_t entries_ = 0;
  std::set<std::pair<dev_t, ino_t>> seen_;
  std::vector<std::filesystem::path> pending_;
  std::vector<std::filesystem::path> reservoir_;
};

/// Asks the sampled files for their sizes and works the totals out.
void measure_sizes(std::vector<std::filesystem::path> paths, FolderListing& listing) {
  std::vector<double> sizes;
  std::size_t asked = 0;
  for (std::filesystem::path& path : paths) {
    struct stat info {};
    ++asked;
    if (::stat(path.c_str(), &info) != 0) {
      listing.diagnostics.add(fault_name(PictureFault::kUnreadable), Severity::kWarning,
                              fault_advice(PictureFault::kUnreadable));
    } else if (info.st_size == 0) {
      listing.diagnostics.add(fault_name(PictureFault::kEmpty), Severity::kWarning,
                              fault_advice(PictureFault::kEmpty));
    } else {
      sizes.push_back(static_cast<double>(info.st_size));
      listing.sample.push_back({std::move(path), Bytes(info.st_size)});
    }
  }
  listing.sizes_exact = listing.complete && static_cast<std::int64_t>(asked) == listing.jpeg_files;
  if (sizes.empty()) return;
  double sum = 0, squares = 0;
  for (const double size : sizes) sum += size;
  listing.mean_bytes = sum / static_cast<double>(sizes.size());
  for (const double size : sizes)
    squares += (size - listing.mean_bytes) * (size - listing.mean_bytes);
  listing.sd_bytes = std::sqrt(squares / static_cast<double>(sizes.size()));
  std::sort(sizes.begin(), sizes.end());
  listing.median_bytes = sizes[sizes.size() / 2];
  listing.p95_bytes = sizes[sizes.size() * 95 / 100];
  listing.max_bytes = sizes.back();
  const double scale = static_cast<double>(listing.jpeg_files) / static_cast<double>(asked);
  listing.total_bytes = Bytes(static_cast<std::int64_t>(std::llround(sum * scale)));
}

void shuffle(std::vector<PictureFile>& files, std::uint64_t seed) {
  // readdir's order differs between file systems: sort first, so that the seed alone decides.
  std::sort(files.begin(), files.end(),
            [](const PictureFile& a, const PictureFile& b) { return a.path < b.path; });
  Random random(seed);
  for (std::size_t i = files.size(); i > 1; --i) std::swap(files[i - 1], files[random.below(i)]);
}

/// "12 PNG and 3 other files", for the message about a folder without JPEG files.
std::string what_was_found(const FolderListing& listing) {
  std::string out;
  const auto append = [&](std::int64_t count, const std::string& what) {
    if (count == 0) return;
    out += (out.empty() ? "" : ", ") + with_commas(count) + " " + what +
           (count == 1 ? " file" : " files");
  };
  for (const auto& [ending, count] : listing.other_pictures) append(count, "." + ending);
  append(listing.other_files, "other");
  return out.empty() ? "no files" : out;
}

}  // namespace

Result<FolderListing> scan_folder(const std::filesystem::path& folder,
                                  const FolderScanOptions& options) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    if (errno == ENOENT)
      return fail(ErrorCode::kNotFound, "no such folder; check the path", folder.string());
    return fail(ErrorCode::kIo, std::string("cannot be opened: ") + std::strerror(errno),
                folder.string());
  }
  if (!S_ISDIR(info.st_mode)) {
    return fail(ErrorCode::kBadInput, "is not a folder; give the folder that holds the pictures",
                folder.string());
  }
  FolderListing listing;
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(folder, ignored);
  listing.name = whole.has_filename() ? whole.filename().string() : folder.string();
  Walk walk(options, listing);
  walk.run(folder);
  if (listing.folders == 0) {
    return fail(ErrorCode::kIo, "cannot be listed; check its permissions", folder.string());
  }
  if (listing.jpeg_files == 0) {
    return fail(ErrorCode::kBadInput,
                "holds no JPEG files (found " + what_was_found(listing) +
                    "); give a folder with .jpg or .jpeg pictures",
                folder.string());
  }
  measure_sizes(walk.take_reservoir(), listing);
  if (listing.sample.empty()) {
    return fail(ErrorCode::kBadInput,
                "none of its " + with_commas(listing.jpeg_files) +
                    " JPEG files can be used: they are empty or cannot be opened",
                folder.string());
  }
  std::int64_t others = 0;
  for (const auto& [ending, count] : listing.other_pictures) others += count;
  if (others > 0) {
    listing.diagnostics.add(
        "pictures_not_probed", Severity::kNote,
        "Pictures other than JPEG are not probed; they usually cost several times more.", others);
  }
  shuffle(listing.sample, options.seed);
  return listing;
}

}  // namespace stoker
