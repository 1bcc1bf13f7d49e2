#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "input/findings/what_if.h"
#include "input/probe/batched_indexing.h"
#include "input/probe/page_cache.h"
#include "plan/knob_value.h"

namespace stoker {
namespace {

using knobs::Value;

/// Short side of images that were made smaller once, over the crop's: what people do for 224.
constexpr double kSideOverCrop = 256.0 / 224;
/// How much faster torchvision.io or torchcodec decode and resize than Pillow: 1.3 to 1.55 by size
/// (pytorch/torchcodec, pull request 1620, one laptop).
constexpr double kFasterDecoder = 1.4, kFasterDecoderLow = 1.3, kFasterDecoderHigh = 1.55;
/// A data-centre NVMe drive by its data sheets (PCIe 4, read): bytes a second, random reads a
/// second.
constexpr double kNvmeBandwidth = 6e9, kNvmeIops = 8e5;
/// More cores are sought up to so many times as many, each half as many again.
constexpr double kMostCores = 16, kMoreCores = 1.5;

std::string gib_text(Bytes bytes) {
  return std::to_string(std::llround(std::ceil(gibibytes(bytes)))) + " GiB";
}

class WhatIfs {
 public:
  explicit WhatIfs(const KnobRequest& request) : request_(request), best_(request.now) {
    best_.settings = request.best;
    best_.consumer = request.step(request.best);
    before_ = knobs::value_with(best_, request.step);
  }

  std::vector<Knob> run() {
    if (before_.forecast.limit == InputLimit::kStep) return {};  // nothing to gain
    free_order();
    pictures();
    pipeline();
    storage();
    host();
    std::erase_if(list_, [](const Knob& knob) { return knob.gain < kMustBring; });
    std::stable_sort(list_.begin(), list_.end(),
                     [](const Knob& a, const Knob& b) { return a.gain > b.gain; });
    return std::move(list_);
  }

 private:
  /// The best that a changed case can do with settings searched anew, and what it is worth.
  Knob weighed(LoaderCase changed, const Host& room) const {
    changed.settings = request_.best;
    changed.consumer = request_.step(changed.settings);
    // Workers alone are searched anew, as if the cost of a sample were certain: a what-if is no
    // plan.
    LoaderFreedom freedom = request_.freedom;
    if (!freedom.prefetch) freedom.prefetch = request_.best.prefetch;
    LoaderCase certain = changed;
    certain.sample.band = {};
    const auto found = search_loader(certain, freedom, room);
    if (found.best) changed.settings = found.best->settings;
    Knob knob;
    const Value after = knobs::value_with(changed, request_.step);
    knobs::weigh(request_, before_, after, knob);
    if (changed.settings.workers != request_.best.workers)
      knob.change = ", num_workers=" + std::to_string(changed.settings.workers);
    if (after.forecast.limit == InputLimit::kStep) knob.change += "; the GPU is then the limit";
    return knob;
  }

  void add(const char* name, KnobKind kind, std::string change, std::string risk,
           LoaderCase changed) {
    Knob knob = weighed(std::move(changed), request_.room);
    knob.name = name;
    knob.kind = kind;
    knob.change = std::move(change) + knob.change;
    knob.risk = std::move(risk);
    list_.push_back(std::move(knob));
  }

  LoaderCase with_sample(SampleCost sample) const {
    LoaderCase changed = best_;
    sample.dataset_samples = best_.sample.dataset_samples;
    changed.sample = std::move(sample);
    return changed;
  }

  /// Where the order of batches was kept for the user, though giving it up would pay.
  void free_order() {
    if (!best_.settings.in_order || best_.settings.workers < 2) return;
    LoaderCase changed = best_;
    changed.settings.in_order = false;
    Knob knob;
    knobs::weigh(request_, before_, knobs::value_with(changed, request_.step), knob);
    knob.name = "in_order";
    knob.kind = KnobKind::kCode;
    knob.change = "in_order=False";
    knob.risk = "PyTorch 2.6 on; the order of batches differs from run to run";
    list_.push_back(std::move(knob));
  }

  void pictures() {
    if (best_.folder == nullptr || request_.profile == nullptr ||
        best_.folder->kind == DataKind::kText)
      return;
    const Probe& probe = *best_.folder;
    const LoaderProfile& profile = *request_.profile;
    const int side = static_cast<int>(probe.image_size * kSideOverCrop);
    const std::string pixels = std::to_string(side) + " px";
    if (auto smaller = smaller_pictures(probe, side, best_.sample, profile)) {
      add("smaller_files", KnobKind::kData, "resize the files once to a short side of " + pixels,
          "a second copy on disk (" + human_bytes(smaller->dataset_bytes) +
              "); crops of large pictures lose detail",
          with_sample(std::move(*smaller)));
    }
    if (auto draft = draft_pictures(probe, side, best_.sample, profile)) {
      add("draft_decode", KnobKind::kCode,
          "decode at a smaller scale: Image.draft(\"RGB\", (" + std::to_string(side) + ", " +
              std::to_string(side) + ")) before the crop",
          "coarser pixels in small crops; check the accuracy", with_sample(std::move(*draft)));
    }
    add("gpu_augmentation", KnobKind::kCode,
        "hand over bytes, and flip, convert and normalise the batch on the GPU",
        "a little of the GPU's time and memory",
        with_sample(bytes_to_gpu(probe, best_.sample, profile)));
    add_decoder(
        [&](double factor) { return faster_decoder(probe, factor, best_.sample, profile); });
  }

  void pipeline() {
    if (best_.pipeline == nullptr) return;
    const PipelineProbe& probe = *best_.pipeline;
    if (auto bytes = bytes_to_gpu(probe, best_.sample)) {
      add("gpu_augmentation", KnobKind::kCode,
          "hand over bytes, and convert, normalise and augment the batch on the GPU",
          "a little of the GPU's time and memory", with_sample(std::move(*bytes)));
    }
    batched_indexing();
    if (faster_decoder(probe, kFasterDecoder, best_.sample))
      add_decoder([&](double f) { return *faster_decoder(probe, f, best_.sample); });
  }

  /// One indexing operation a batch in the place of samples that are put together.
  void batched_indexing() {
    if (!handles_samples_singly(best_.sample, best_.settings.batch)) return;
    add("batched_indexing", KnobKind::kCode,
        "index whole batches (Dataset.__getitems__, or a BatchSampler as sampler= with "
        "batch_size=None) instead of collating samples one by one",
        "the data have to lie in one tensor or array",
        with_sample(indexed_by_batches(best_.sample)));
  }

  template <class Faster>
  void add_decoder(const Faster& faster) {
    add("faster_decoder", KnobKind::kCode,
        "decode with torchvision.io or torchcodec instead of Pillow",
        "another decoder gives slightly other pixels", with_sample(faster(kFasterDecoder)));
    Knob& knob = list_.back();
    const auto gain = [&](double factor) {
      return weighed(with_sample(faster(factor)), request_.room).gain;
    };
    knob.gain_low = std::min(knob.gain_low, gain(kFasterDecoderLow));
    knob.gain_high = std::max(knob.gain_high, gain(kFasterDecoderHigh));
  }

  void storage() {
    if (before_.forecast.cached_share >= 1 || best_.sample.read_bytes <= 0) return;
    const bool files = best_.folder == nullptr || best_.folder->kind == DataKind::kPictures;
    if (files && best_.sample.cold_seek_ms > 0) {
      add("tar_shards", KnobKind::kData, "pack the files into tar shards that are read in sequence",
          "shuffling within a buffer only; a second copy on disk",
          with_sample(packed_in_shards(best_.sample)));
    }
    LoaderCase more = best_;
    more.host.memory = Bytes(std::llround(static_cast<double>(best_.sample.dataset_bytes.count()) /
                                          kCacheableMemory)) +
                       knobs::memory_of(before_.forecast);
    add("more_memory", KnobKind::kHardware,
        gib_text(more.host.memory) + " DRAM instead of " + gib_text(best_.host.memory) +
            ": the data set stays in the page cache",
        "the first epoch gains nothing", more);
    LoaderCase faster = best_;
    faster.host.disk_bandwidth = kNvmeBandwidth;
    faster.host.disk_iops = kNvmeIops;
    faster.sample.cold_seek_ms = 0;
    faster.sample.cold_bandwidth = kNvmeBandwidth;
    add("faster_disk", KnobKind::kHardware, "the data on a local NVMe drive",
        "must hold the data set: " + human_bytes(best_.sample.dataset_bytes), faster);
  }

  void host() {
    more_cores();
    Host room = request_.room;
    if (room.shared_memory.count() <= 0) return;
    room.shared_memory = room.memory.count() > 0 ? room.memory : Bytes{};
    Knob knob = weighed(best_, room);
    if (knob.gain < kMustBring) return;
    knob.name = "more_shared_memory";
    knob.kind = KnobKind::kHardware;
    knob.change = "a larger /dev/shm (docker run --shm-size, mount -o remount,size=)" + knob.change;
    knob.risk = "it is DRAM: " + human_bytes(knob.memory) + " more";
    list_.push_back(std::move(knob));
  }

  /// Half as many cores again and again, until nothing more is gained.
  void more_cores() {
    const InputLimit limit = before_.forecast.limit;
    if (limit != InputLimit::kCores && limit != InputLimit::kWorkers &&
        limit != InputLimit::kInProcess)
      return;
    // Cores are no cure for work that need not be done.
    if (handles_samples_singly(best_.sample, best_.settings.batch)) return;
    std::optional<Knob> best;
    for (double factor = kMoreCores; factor <= kMostCores; factor *= kMoreCores) {
      LoaderCase more = best_;
      more.host.cores = std::ceil(best_.host.cores * factor);
      more.host.quota = {};
      Knob knob = weighed(more, request_.room);
      if (best && knob.gain < best->gain + kMustBring) break;
      char cores[64];
      std::snprintf(cores, sizeof cores, "a host with %g cores instead of %g", more.host.cores,
                    best_.host.cores);
      knob.change = cores + knob.change;
      best = std::move(knob);
    }
    if (!best) return;
    best->name = "more_cores";
    best->kind = KnobKind::kHardware;
    best->risk = "memory of the further workers";
    list_.push_back(std::move(*best));
  }

  const KnobRequest& request_;
  LoaderCase best_;
  Value before_;
  std::vector<Knob> list_;
};

}  // namespace

std::vector<Knob> other_knobs(const KnobRequest& request) { return WhatIfs(request).run(); }

}  // namespace stoker
