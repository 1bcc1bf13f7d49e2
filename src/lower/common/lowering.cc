#include "lower/common/lowering.h"

#include <algorithm>

namespace stoker {

void drop_births(std::vector<Instruction>& instructions, std::size_t from) {
  const auto begin = instructions.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end = std::remove_if(begin, instructions.end(),
                                  [](const Instruction& i) { return i.when == When::kFirst; });
  instructions.erase(end, instructions.end());
  for (std::size_t i = from; i < instructions.size(); ++i) instructions[i].when = When::kAlways;
}

Kernel kernel_over(KernelClass kernel_class, Bytes bytes, std::int64_t reads,
                   std::uint32_t launches) {
  Kernel kernel;
  kernel.kernel_class = kernel_class;
  kernel.read = bytes * reads;
  kernel.written = bytes;
  kernel.elements = bytes.count() / size_of(kernel.dtype);
  kernel.flops = Flops(static_cast<double>(kernel.elements));
  kernel.launches = static_cast<std::uint16_t>(std::min<std::uint32_t>(launches, 0xffff));
  return kernel;
}

}  // namespace stoker
