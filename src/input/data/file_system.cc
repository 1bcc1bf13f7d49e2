#include "input/data/file_system.h"

#include <sys/vfs.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "system/system_files.h"

namespace stoker {
namespace {

struct KnownType {
  std::string_view name;  ///< as mountinfo writes it
  std::int64_t magic;     ///< f_type of statfs; 0: not told apart by it
  FileSystemKind kind;
};

/// Magic numbers: linux/magic.h and the file systems' own headers (zfs, lustre, gpfs, beegfs).
/// The first entry of a magic number names it where mountinfo cannot be read.
constexpr KnownType kKnown[] = {
    {"ext4", 0xEF53, FileSystemKind::kLocal},
    {"ext3", 0, FileSystemKind::kLocal},
    {"ext2", 0, FileSystemKind::kLocal},
    {"xfs", 0x58465342, FileSystemKind::kLocal},
    {"btrfs", 0x9123683E, FileSystemKind::kLocal},
    {"zfs", 0x2FC12FC1, FileSystemKind::kLocal},
    {"f2fs", 0xF2F52010, FileSystemKind::kLocal},
    {"bcachefs", 0xCA451A4E, FileSystemKind::kLocal},
    {"squashfs", 0x73717368, FileSystemKind::kLocal},
    {"erofs", 0xE0F5E1E2, FileSystemKind::kLocal},
    {"vfat", 0x4D44, FileSystemKind::kLocal},
    {"exfat", 0x2011BAB0, FileSystemKind::kLocal},
    {"ntfs3", 0x7366746E, FileSystemKind::kLocal},
    {"tmpfs", 0x01021994, FileSystemKind::kMemory},
    {"ramfs", 0x858458F6, FileSystemKind::kMemory},
    {"nfs", 0x6969, FileSystemKind::kNetwork},
    {"nfs4", 0, FileSystemKind::kNetwork},
    {"cifs", 0xFF534D42, FileSystemKind::kNetwork},
    {"smb3", 0xFE534D42, FileSystemKind::kNetwork},
    {"lustre", 0x0BD00BD0, FileSystemKind::kNetwork},
    {"gpfs", 0x47504653, FileSystemKind::kNetwork},
    {"ceph", 0x00C36400, FileSystemKind::kNetwork},
    {"beegfs", 0x19830326, FileSystemKind::kNetwork},
    {"afs", 0x5346414F, FileSystemKind::kNetwork},
    {"overlay", 0x794C7630, FileSystemKind::kOverlay},
    {"9p", 0x01021997, FileSystemKind::kGuest},
    {"virtiofs", 0, FileSystemKind::kGuest},
    {"fuse", 0x65735546, FileSystemKind::kFuse},
    {"fuseblk", 0, FileSystemKind::kFuse},
};

/// Spaces and the like are written as backslash and three octal digits.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool octal = text[i] == '\\' && i + 3 < text.size() &&
                       std::all_of(text.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                   text.begin() + static_cast<std::ptrdiff_t>(i) + 4,
                                   [](char c) { return c >= '0' && c <= '7'; });
    if (octal) {
      out +=
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool holds(std::string_view mount_point, std::string_view path) {
  if (mount_point == "/") return path.starts_with('/');
  return path.starts_with(mount_point) &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

FileSystemKind kind_of_type(std::string_view type) {
  for (const KnownType& known : kKnown) {
    if (known.name == type) return known.kind;
  }
  return type.starts_with("fuse.") ? FileSystemKind::kFuse : FileSystemKind::kUnknown;
}

/// "lowerdir=/a:/b,upperdir=/c,workdir=/d".
void read_layers(std::string_view options, FileSystemFacts& out) {
  for (const std::string& option : split(options, ',')) {
    if (option.starts_with("lowerdir="))
      out.layers = 1 + static_cast<int>(std::count(option.begin(), option.end(), ':'));
    out.upper = out.upper || option.starts_with("upperdir=");
  }
}

}  // namespace

std::string_view file_system_kind_name(FileSystemKind kind) {
  constexpr std::string_view kNames[kFileSystemKinds] = {"local", "memory", "network", "overlay",
                                                         "fuse",  "guest",  "unknown"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<FileSystemKind> file_system_kind_named(std::string_view name) {
  for (std::size_t k = 0; k < kFileSystemKinds; ++k) {
    const auto kind = static_cast<FileSystemKind>(k);
    if (file_system_kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string_view file_system_meaning(FileSystemKind kind) {
  constexpr std::string_view kMeanings[kFileSystemKinds] = {
      "",
      "The files lie in memory: there are no cold reads, and they take DRAM from the loader.",
      "Each file costs round trips to a server that serves a limited number of them a second; "
      "beyond that more workers make it worse, and others share it. Shards or a local copy help.",
      "The files lie in a container's layers: reads go to the disk below. Data that is mounted "
      "as a volume, not copied into the image, avoids the layers.",
      "A process serves the files: each open and read passes through it, and it may cache or "
      "fetch over a network on its own. More workers may not help.",
      "The folder belongs to the host of this virtual machine: each file costs exchanges with "
      "it, and its page cache may answer reads that are cold here.",
      "The file system is not known here; take the figures of cold reads with care."};
  return kMeanings[static_cast<std::size_t>(kind)];
}

FileSystemFacts file_system_from(std::string_view mountinfo, std::string_view path,
                                 std::int64_t magic) {
  FileSystemFacts out{.name = "unknown"};
  std::size_t longest = 0;
  for (const std::string& line : split(mountinfo, '\n')) {
    // ID, parent, device, root, MOUNT POINT, options, tags ..., "-", TYPE, source, super options
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 10 || fields.end() - dash < 3) continue;
    const std::string point = unescaped(fields[4]);
    if (!holds(point, path) || point.size() < longest) continue;
    longest = point.size();
    out = {.name = dash[1], .kind = kind_of_type(dash[1])};
    if (out.kind == FileSystemKind::kOverlay && fields.end() - dash > 3) read_layers(dash[3], out);
  }
  if (longest > 0) return out;
  for (const KnownType& known : kKnown) {
    if (known.magic != 0 && known.magic == magic)
      return {.name = std::string(known.name), .kind = known.kind};
  }
  return out;
}

FileSystemFacts file_system_of(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::canonical(path, ignored);
  struct statfs facts {};
  const bool asked = ::statfs(path.c_str(), &facts) == 0;
  // f_type is signed on some platforms: only its 32 bits are the magic number.
  const std::int64_t magic = asked ? static_cast<std::int64_t>(facts.f_type) & 0xFFFFFFFF : 0;
  return file_system_from(system_files()("/proc/self/mountinfo").value_or(""), whole.string(),
                          magic);
}

}  // namespace stoker
