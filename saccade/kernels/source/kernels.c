/* Every kernel, for float and for double. Plain C with the vector extensions that gcc and clang share. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

/* Makes the compiler load a vector once that is used several times, rather than reloading it for each use. */
#if defined(__AVX__)
#define IN_REGISTER(x) __asm__("" : "+x"(x))
#else
#define IN_REGISTER(x) ((void)0)
#endif

#define INLINE static inline __attribute__((always_inline))

/* packing[bits] lists the positions of the ones among 8 bits, lowest first. */
static uint8_t packing[256][8];

static void __attribute__((constructor)) fill_packing(void) {
    for (int bits = 0; bits < 256; bits++)
        for (int i = 0, count = 0; i < 8; i++)
            if (bits >> i & 1) packing[bits][count++] = i;
}

#define REAL float
#define INTEGER int32_t
#define IS_FLOAT 1
#define NAME(name) name##_float
#include "vector.h"
#include "additive.h"
#include "cross_entropy.h"
#include "top_log_probs.h"
#include "grow.h"
#include "sparse.h"
#include "segments.h"
#include "graph.h"
#include "total_variation.h"
#include "skip_gram.h"
#include "rcnn.h"
#include "linear.h" /* float only */
#include "decoder_step.h"
#include "log_mel.h"
#undef REAL
#undef INTEGER
#undef IS_FLOAT
#undef NAME

#define REAL double
#define INTEGER int64_t
#define IS_FLOAT 0
#define NAME(name) name##_double
#include "vector.h"
#include "additive.h"
#include "cross_entropy.h"
#include "top_log_probs.h"
#include "grow.h"
#include "sparse.h"
#include "segments.h"
#include "graph.h"
#include "total_variation.h"
#include "skip_gram.h"
#include "rcnn.h"
#include "structured.h" /* double only from here on */
#include "chain.h"
#include "eisner.h"
#include "matrix_tree.h"
#include "monotonic.h"
