#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

/// Where reads that miss the page cache go.
enum class FileSystemKind : std::uint8_t {
  kLocal,    ///< a disk of this machine: ext4, xfs, btrfs, zfs, f2fs, squashfs
  kMemory,   ///< tmpfs, ramfs: no disk, no cold reads
  kNetwork,  ///< NFS, CIFS, Lustre, GPFS, Ceph, BeeGFS
  kOverlay,  ///< a container's layers: reads go to the layer that holds the file
  kFuse,     ///< served by a process: sshfs, s3fs, gcsfuse
  kGuest,    ///< a folder of the host lent to a virtual machine: 9p, virtiofs
  kUnknown
};
inline constexpr std::size_t kFileSystemKinds = 7;
[[nodiscard]] std::string_view file_system_kind_name(FileSystemKind kind);
[[nodiscard]] std::optional<FileSystemKind> file_system_kind_named(std::string_view name);
/// One sentence: what the kind means for the measured figures and for more workers. Empty for a
/// local disk.
[[nodiscard]] std::string_view file_system_meaning(FileSystemKind kind);

struct FileSystemFacts {
  std::string name;  ///< "ext4", "nfs4", "fuse.sshfs"; "unknown"
  FileSystemKind kind = FileSystemKind::kUnknown;
  int layers = 0;      ///< of an overlay: folders below its upper one
  bool upper = false;  ///< of an overlay: it has a layer of its own that is written to
};

/// What holds `path` (absolute, resolved), by the type of its mount in /proc/self/mountinfo: the
/// last one whose mount point is the longest prefix; without one, by statfs' magic number.
[[nodiscard]] FileSystemFacts file_system_from(std::string_view mountinfo, std::string_view path,
                                               std::int64_t magic);

/// The file system that a file or folder of this machine lies on.
[[nodiscard]] FileSystemFacts file_system_of(const std::filesystem::path& path);

}  // namespace stoker
