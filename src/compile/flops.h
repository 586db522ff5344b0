// How much arithmetic a step is.
#pragma once
#include <vector>

#include "compile/passes.h"

namespace shardarray {

/// Adds the operations on floating numbers of each of the step's items to those of its device. A product of m x k by k x n has 2 m n k,
/// a sum of n numbers n - 1, a transform of n numbers 5 n log2 n (https://www.fftw.org/speed), half of that where they are real; of
/// factorizations and solves it is the leading term (Golub and Van Loan, Matrix Computations); sorts and moves have none. Of complex
/// numbers a library's step has four times as many. `kernel`: of a loop.
void add_flops(const Step& step, const GroupKernel& kernel, std::vector<double>& of_device);

}  // namespace shardarray
