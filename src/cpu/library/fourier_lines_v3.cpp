#define SHARDARRAY_FOURIER_TABLE fourier_v3
#include "cpu/library/fourier_lines.inc"
