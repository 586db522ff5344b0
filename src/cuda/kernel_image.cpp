// The compiled kernels, embedded in this plug-in.
#include "cuda/driver.h"

// The file name comes from CMake.
asm(".section .rodata\n"
    ".balign 64\n"
    "shardarray_cuda_kernels:\n"
    ".incbin \"" SHARDARRAY_KERNEL_IMAGE
    "\"\n"
    ".previous\n");
extern "C" const char shardarray_cuda_kernels[];

namespace shardarray::cuda {

const void* kernel_image() { return shardarray_cuda_kernels; }

}  // namespace shardarray::cuda
