#pragma once

#include <optional>

#include "input/pipeline/pipeline_probe.h"
#include "input/probe/sample_cost.h"

namespace stoker {

/// The cost of a sample after every image was resized once so that its short side is at most
/// `short_side` pixels. Bytes and stages that work on the whole image scale with its pixels;
/// later stages stay. nullopt when that changes less than a tenth of the pixels. `like` gives
/// output shape and transport.
[[nodiscard]] std::optional<SampleCost> smaller_pictures(const Probe& probe, int short_side,
                                                         const SampleCost& like,
                                                         const LoaderProfile& profile);

/// The cost of a sample when every image is decoded at the smallest of the scales 1/2, 1/4, 1/8
/// (Pillow's Image.draft, libjpeg's scaled inverse transform) that leaves its short side at
/// `short_side` pixels. Of decoding, what goes with the pixels shrinks with the scale and what goes
/// with the bytes of the file (entropy decoding) stays, by the probe's fit. nullopt when that saves
/// less than a tenth of the pixels.
[[nodiscard]] std::optional<SampleCost> draft_pictures(const Probe& probe, int short_side,
                                                       const SampleCost& like,
                                                       const LoaderProfile& profile);

/// The cost when images are handed over as bytes, and flipped, converted and normalised on the
/// GPU as a batch.
[[nodiscard]] SampleCost bytes_to_gpu(const Probe& probe, const SampleCost& like,
                                      const LoaderProfile& profile);

/// The cost with a decoder that is `factor` times as fast.
[[nodiscard]] SampleCost faster_decoder(const Probe& probe, double factor, const SampleCost& like,
                                        const LoaderProfile& profile);

// These read a probe of a user's own pipeline, as far as its stages have names that tell: nullopt
// where they do not.

[[nodiscard]] std::optional<SampleCost> bytes_to_gpu(const PipelineProbe& probe,
                                                     const SampleCost& like);
[[nodiscard]] std::optional<SampleCost> faster_decoder(const PipelineProbe& probe, double factor,
                                                       const SampleCost& like);

/// The samples packed into shards that are read in sequence: no seek for each.
[[nodiscard]] SampleCost packed_in_shards(SampleCost sample);

}  // namespace stoker
