#define SHARDARRAY_INTEGER_PRODUCT integer_product_baseline
#include "cpu/products/integer_product.inc"
