#include "device/host/storage_kind.h"

#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/setting.h"
#include "base/text.h"

namespace stoker {
namespace {

/// - nvme, sata, hdd: data sheets of data-centre drives (PCIe 4 NVMe: 6.5 to 7 GB/s, 0.8 to 1
///   million random reads; SATA SSD: 550 MB/s, 90 to 98 thousand; 7,200 rpm: 8 ms of seeking and 4
///   of turning, 170 random reads with a deep queue). What one reader of files gets is an
///   assumption.
/// - nfs: Amazon EFS's documentation (docs.aws.amazon.com/efs/latest/ug/performance.html): 500
///   MiB/s a client, 35,000 reading operations/s, 0.25 ms each at best. Four operations to look a
///   file up, open, read and close it are an assumption.
/// - lustre: FSx for Lustre's documentation (LustreGuide/ssd-storage.html): 200 MB/s a TiB, here of
///   a file system of 5 TiB; metadata and data below a millisecond each; tens of thousands of
///   operations/s.
/// - s3: Amazon S3's performance guidelines: 100 to 200 ms to the first byte of a small object,
///   5,500 GET/s a prefix, 85 to 90 MB/s a connection; a network card of 10 Gbit/s is an
///   assumption.
constexpr std::array<StorageFigures, 6> kKinds{{
    {"nvme", "an NVMe drive by data sheets", 6e9, 8e5, 0.1, 2e9},
    {"sata", "a SATA SSD by data sheets", 5.5e8, 9e4, 0.15, 5e8},
    {"hdd", "a hard disk by data sheets", 2e8, 170, 12, 2e8},
    {"nfs", "NFS by Amazon EFS's documentation", 5.24e8, 8750, 1, 2e8},
    {"lustre", "Lustre of 5 TiB by Amazon FSx's documentation", 1e9, 1e4, 1, 5e8},
    {"s3", "S3 by its performance guidelines, one prefix", 1.25e9, 5500, 150, 8.75e7},
}};

/// What people call the same storage; of SSDs the slower kind.
std::string usual_name(std::string typed) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOther{
      {{"ssd", "sata"}, {"efs", "nfs"}, {"fsx", "lustre"}}};
  for (const auto& [other, name] : kOther) {
    if (typed == other) return std::string(name);
  }
  return typed;
}

}  // namespace

std::span<const StorageFigures> storage_kinds() { return kKinds; }

Result<const StorageFigures*> storage_kind_named(std::string_view typed) {
  const std::string wanted = usual_name(simplified(typed));
  std::vector<std::string> names;
  std::string all;
  for (const StorageFigures& kind : kKinds) {
    if (wanted == kind.name) return &kind;
    names.emplace_back(kind.name);
    all += (all.empty() ? "" : ", ") + std::string(kind.name);
  }
  return fail(ErrorCode::kUsage,
              "unknown storage \"" + std::string(typed) + "\"" + suggestion(wanted, names) +
                  " (known: " + all + "; other figures: " + mark(Setting::kHost) +
                  " disk=200M,iops=5000)",
              mark(Setting::kStorage));
}

void fill_storage(const StorageFigures& kind, Host& host) {
  if (host.disk_bandwidth <= 0) host.disk_bandwidth = kind.bandwidth;
  if (host.disk_iops <= 0) host.disk_iops = kind.reads;
  char text[160];
  std::snprintf(
      text, sizeof text,
      "data on %s: %.0f MB/s, %.0f files/s, %g ms to open one and %.0f MB/s for one reader",
      std::string(kind.words).c_str(), host.disk_bandwidth / 1e6, host.disk_iops, kind.open_ms,
      kind.one_reader / 1e6);
  host.assumption += (host.assumption.empty() ? "" : "; ") + std::string(text);
}

}  // namespace stoker
