#include "observe/sample/code_kind.h"

#include <string>

#include "base/text.h"

namespace stoker {
namespace {

/// Parts of the paths of libraries, in lower case; the first that fits counts. NumPy and SciPy
/// serve both loading and computing and stand in no list.
struct Part {
  std::string_view part;
  CodeKind kind;
};
constexpr Part kParts[] = {
    // Before PyTorch's libraries for the CPU, whose names theirs contain.
    {"libtorch_cuda", CodeKind::kDevice},
    {"libtorch_hip", CodeKind::kDevice},
    {"libc10_cuda", CodeKind::kDevice},
    {"libcuda", CodeKind::kDevice},  // and libcudart
    {"libcudnn", CodeKind::kDevice},
    {"libcublas", CodeKind::kDevice},
    {"libcufft", CodeKind::kDevice},
    {"libcurand", CodeKind::kDevice},
    {"libcusolver", CodeKind::kDevice},
    {"libcusparse", CodeKind::kDevice},
    {"libcutensor", CodeKind::kDevice},
    {"libnv", CodeKind::kDevice},  // libnvidia, libnvrtc, libnvJitLink
    {"libnccl", CodeKind::kDevice},
    {"libamdhip", CodeKind::kDevice},
    {"libhsa", CodeKind::kDevice},
    {"libroc", CodeKind::kDevice},
    {"librccl", CodeKind::kDevice},
    {"libmiopen", CodeKind::kDevice},
    // Images.
    {"/pil/", CodeKind::kData},
    {"pillow", CodeKind::kData},
    {"libjpeg", CodeKind::kData},
    {"turbojpeg", CodeKind::kData},
    {"libpng", CodeKind::kData},
    {"libwebp", CodeKind::kData},
    {"libtiff", CodeKind::kData},
    {"openjp2", CodeKind::kData},
    {"libheif", CodeKind::kData},
    {"libjxl", CodeKind::kData},
    {"libavif", CodeKind::kData},
    {"/cv2/", CodeKind::kData},
    {"opencv", CodeKind::kData},
    {"torchvision/image", CodeKind::kData},
    {"/skimage/", CodeKind::kData},
    {"libgdal", CodeKind::kData},
    {"simpleitk", CodeKind::kData},
    {"scipy/ndimage", CodeKind::kData},
    {"libvips", CodeKind::kData},
    {"libdali", CodeKind::kData},
    // Films and sound.
    {"libav", CodeKind::kData},
    {"libsws", CodeKind::kData},
    {"libswr", CodeKind::kData},
    {"decord", CodeKind::kData},
    {"torchcodec", CodeKind::kData},
    {"torchaudio", CodeKind::kData},
    {"sndfile", CodeKind::kData},
    {"libflac", CodeKind::kData},
    {"mpg123", CodeKind::kData},
    {"soxr", CodeKind::kData},
    // Text.
    {"/tokenizers", CodeKind::kData},
    {"sentencepiece", CodeKind::kData},
    {"tiktoken", CodeKind::kData},
    {"_json.", CodeKind::kData},
    {"orjson", CodeKind::kData},
    {"simdjson", CodeKind::kData},
    {"ujson", CodeKind::kData},
    {"msgpack", CodeKind::kData},
    {"libxml", CodeKind::kData},
    // Tables and stores.
    {"/pyarrow/", CodeKind::kData},
    {"libarrow", CodeKind::kData},
    {"libparquet", CodeKind::kData},
    {"/pandas/", CodeKind::kData},
    {"/polars", CodeKind::kData},
    {"h5py", CodeKind::kData},
    {"libhdf5", CodeKind::kData},
    {"lmdb", CodeKind::kData},
    {"sqlite", CodeKind::kData},
    {"tensorstore", CodeKind::kData},
    {"numcodecs", CodeKind::kData},
    {"_csv.", CodeKind::kData},
    // Archives.
    {"libz.", CodeKind::kData},
    {"libz-", CodeKind::kData},
    {"zlib", CodeKind::kData},
    {"bz2", CodeKind::kData},
    {"lzma", CodeKind::kData},
    {"zstd", CodeKind::kData},
    {"lz4", CodeKind::kData},
    {"snappy", CodeKind::kData},
    {"blosc", CodeKind::kData},
    {"libarchive", CodeKind::kData},
    // Tensors.
    {"libtorch", CodeKind::kMath},
    {"libc10", CodeKind::kMath},
    {"/torch/", CodeKind::kMath},
    {"/torchvision/", CodeKind::kMath},
    {"torchinductor", CodeKind::kMath},
    {"libtriton", CodeKind::kMath},
    {"libmkl", CodeKind::kMath},
    {"libdnnl", CodeKind::kMath},
    {"libiomp", CodeKind::kMath},
    {"libgomp", CodeKind::kMath},
    {"libomp", CodeKind::kMath},
    {"openblas", CodeKind::kMath},
    {"libblas", CodeKind::kMath},
    {"liblapack", CodeKind::kMath},
    {"jaxlib", CodeKind::kMath},
    {"tensorflow", CodeKind::kMath},
    {"onnxruntime", CodeKind::kMath},
    {"libpython", CodeKind::kInterpreter},
};

}  // namespace

CodeKind code_kind(std::string_view path) {
  const std::string lower = lower_case(path);
  // A program is Python's by its own name: the folder python3.11 holds everybody's libraries.
  const std::string_view file = std::string_view(lower).substr(lower.rfind('/') + 1);
  if (file.starts_with("python")) return CodeKind::kInterpreter;
  for (const Part& part : kParts) {
    if (lower.find(part.part) != std::string::npos) return part.kind;
  }
  return CodeKind::kOther;
}

}  // namespace stoker
