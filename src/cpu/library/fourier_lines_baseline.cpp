#define SHARDARRAY_FOURIER_TABLE fourier_baseline
#include "cpu/library/fourier_lines.inc"
