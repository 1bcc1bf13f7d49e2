#include "observe/sample/wait_kind.h"

#include <numeric>
#include <span>

namespace stoker {
namespace {

constexpr std::array<std::string_view, kWaitKinds> kNames = {
    "running", "poll",  "futex",  "pipe",    "socket", "disk",   "network_storage",
    "timer",   "child", "device", "stopped", "other",  "unknown"};

/// Kernel functions that threads sleep in, by what their names contain; the first that fits counts.
/// Names vary from kernel to kernel (futex_wait_queue_me, futex_wait_queue, futex_do_wait), their
/// stems do not.
struct Stem {
  std::string_view part;
  WaitKind kind;
};
constexpr Stem kStems[] = {
    {"futex", WaitKind::kFutex},
    {"poll", WaitKind::kPoll},
    {"select", WaitKind::kPoll},
    {"pipe", WaitKind::kPipe},
    {"nfs", WaitKind::kNetworkStorage},
    {"rpc_", WaitKind::kNetworkStorage},
    {"fuse", WaitKind::kNetworkStorage},
    {"request_wait_answer", WaitKind::kNetworkStorage},
    {"ceph", WaitKind::kNetworkStorage},
    {"cifs", WaitKind::kNetworkStorage},
    {"smb", WaitKind::kNetworkStorage},
    {"p9_", WaitKind::kNetworkStorage},
    {"netfs", WaitKind::kNetworkStorage},
    {"cl_sync_io", WaitKind::kNetworkStorage},
    {"ptlrpc", WaitKind::kNetworkStorage},
    {"gpfs", WaitKind::kNetworkStorage},
    {"nvidia", WaitKind::kDevice},
    {"uvm_", WaitKind::kDevice},
    {"os_acquire", WaitKind::kDevice},
    {"kfd_", WaitKind::kDevice},
    {"amdgpu", WaitKind::kDevice},
    {"nanosleep", WaitKind::kTimer},
    {"sigtimedwait", WaitKind::kTimer},
    {"do_wait", WaitKind::kChild},
    {"wait_consider", WaitKind::kChild},
    {"kernel_wait", WaitKind::kChild},
    {"skb", WaitKind::kSocket},
    {"sk_wait", WaitKind::kSocket},
    {"sk_stream", WaitKind::kSocket},
    {"inet_csk", WaitKind::kSocket},
    {"unix_", WaitKind::kSocket},
    {"tcp_", WaitKind::kSocket},
    {"io_schedule", WaitKind::kDisk},
    {"folio_wait", WaitKind::kDisk},
    {"wait_on_page", WaitKind::kDisk},
    {"blk_", WaitKind::kDisk},
    {"bio_", WaitKind::kDisk},
    {"jbd2", WaitKind::kDisk},
    {"xfs_", WaitKind::kDisk},
    {"ext4", WaitKind::kDisk},
    {"btrfs", WaitKind::kDisk},
    {"balance_dirty", WaitKind::kDisk},
    {"iomap_dio", WaitKind::kDisk},
    {"dio_", WaitKind::kDisk},
};

}  // namespace

std::string_view name_of(WaitKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

WaitKind wait_kind(char state, std::string_view wchan) {
  if (state == 'R') return WaitKind::kRunning;
  if (state == 'T' || state == 't') return WaitKind::kStopped;
  const bool named = !wchan.empty() && wchan != "0";
  if (named) {
    for (const Stem& stem : kStems) {
      if (wchan.find(stem.part) != std::string_view::npos) return stem.kind;
    }
  }
  // A thread that nothing may wake is waiting for a device, and that is nearly always storage.
  if (state == 'D') return WaitKind::kDisk;
  return named ? WaitKind::kOther : WaitKind::kUnknown;
}

std::uint32_t Looks::all() const { return std::accumulate(count.begin(), count.end(), 0U); }

Looks& Looks::operator+=(const Looks& other) {
  for (std::size_t i = 0; i < kWaitKinds; ++i) count[i] += other.count[i];
  return *this;
}

}  // namespace stoker
