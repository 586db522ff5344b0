#define SHARDARRAY_INTEGER_PRODUCT integer_product_v3
#include "cpu/products/integer_product.inc"
