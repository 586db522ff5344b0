#define SHARDARRAY_INTEGER_PRODUCT integer_product_v4
#include "cpu/products/integer_product.inc"
