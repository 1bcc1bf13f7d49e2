#include "input/data/picture_fault.h"

namespace stoker {

std::string_view fault_name(PictureFault fault) {
  constexpr std::string_view kNames[kPictureFaults] = {"none",
                                                       "unreadable_picture",
                                                       "vanished_picture",
                                                       "empty_picture",
                                                       "not_a_picture",
                                                       "truncated_picture",
                                                       "corrupt_picture",
                                                       "decompression_bomb",
                                                       "picture_file_too_big"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string_view fault_advice(PictureFault fault) {
  constexpr std::string_view kAdvice[kPictureFaults] = {
      "",
      "Pictures that could not be opened were left out; check their permissions.",
      "Pictures that were listed but gone when they were read were left out; is the folder being "
      "changed?",
      "Empty picture files were left out; a loader would raise on them.",
      "Files named like JPEG or PNG hold something else and were left out.",
      "Pictures that end early were left out; Pillow raises on them by default.",
      "Pictures that the decoder refuses were left out.",
      "Pictures above the pixel limit (decompression bombs) were left out undecoded.",
      "Picture files above the size limit were left out."};
  return kAdvice[static_cast<std::size_t>(fault)];
}

}  // namespace stoker
