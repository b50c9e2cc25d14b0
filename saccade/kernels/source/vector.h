/* Vectors of REAL. Included once for each REAL, so there is no include guard. */

#undef LANES
#undef vec
#undef mask_vec
#undef loadable
#define LANES ((long)(VECTOR_BYTES / sizeof(REAL)))
#define vec NAME(vec)
#define mask_vec NAME(mask_vec)
#define loadable NAME(loadable)

typedef REAL vec __attribute__((vector_size(VECTOR_BYTES)));
typedef INTEGER mask_vec __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL loadable __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

#undef load
#undef store
#undef splat
#undef choose
#undef larger
#undef any
#undef total
#undef largest
#undef reciprocal
#undef exponential
#undef square_root
#undef square_root_of
#undef pack
#define load NAME(load)
#define store NAME(store)
#define splat NAME(splat)
#define choose NAME(choose)
#define larger NAME(larger)
#define any NAME(any)
#define total NAME(total)
#define largest NAME(largest)
#define reciprocal NAME(reciprocal)
#define exponential NAME(exponential)
#define square_root NAME(square_root)
#define square_root_of NAME(square_root_of)
#define pack NAME(pack)

INLINE vec load(const REAL *from) { return *(const loadable *)from; }
INLINE void store(REAL *to, vec x) { *(loadable *)to = x; }
INLINE vec splat(REAL x) { return x - (vec){0}; }

INLINE vec choose(mask_vec condition, vec yes, vec no) {
    return (vec)((condition & (mask_vec)yes) | (~condition & (mask_vec)no));
}

/* The larger of the two; the second one if either is NaN. */
INLINE vec larger(vec a, vec b) {
#if defined(__AVX__) && !defined(__AVX512F__) && IS_FLOAT
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__AVX__) && !defined(__AVX512F__)
    return (vec)_mm256_max_pd((__m256d)a, (__m256d)b);
#elif defined(__AVX512F__) && IS_FLOAT
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX512F__)
    return (vec)_mm512_max_pd((__m512d)a, (__m512d)b);
#else
    return choose(a > b, a, b);
#endif
}

/* Stores the chosen elements contiguously and returns their number; writes a whole vector. */
INLINE long pack(vec x, mask_vec chosen, REAL *to) {
#if defined(__AVX2__) && !defined(__AVX512F__) && IS_FLOAT
    int bits = _mm256_movemask_ps((__m256)chosen);
    __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)packing[bits]));
    store(to, (vec)_mm256_permutevar8x32_ps((__m256)x, order));
    return __builtin_popcount(bits);
#else
    long count = 0;
    for (long i = 0; i < LANES; i++) {
        to[count] = x[i];
        count -= chosen[i]; /* true is -1 */
    }
    return count;
#endif
}

INLINE int any(mask_vec x) {
#if defined(__AVX__) && !defined(__AVX512F__)
    return !_mm256_testz_si256((__m256i)x, (__m256i)x);
#elif defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) != 0;
#else
    INTEGER result = 0;
    for (long i = 0; i < LANES; i++) result |= x[i];
    return result != 0;
#endif
}

#if defined(__AVX512F__) && IS_FLOAT
INLINE REAL total(vec x) { return _mm512_reduce_add_ps((__m512)x); }
INLINE REAL largest(vec x) { return _mm512_reduce_max_ps((__m512)x); }
#elif defined(__AVX__) && IS_FLOAT
INLINE REAL total(vec x) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_shuffle_ps(half, half, 1)));
}

INLINE REAL largest(vec x) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_shuffle_ps(half, half, 1)));
}
#else
INLINE REAL total(vec x) {
    REAL sum = 0;
    for (long i = 0; i < LANES; i++) sum += x[i];
    return sum;
}

INLINE REAL largest(vec x) {
    REAL best = x[0];
    for (long i = 1; i < LANES; i++) best = x[i] > best ? x[i] : best;
    return best;
}
#endif

/* 1 / x for 1 <= x < infinity. In float an estimate and one Newton step are faster than the division. */
INLINE vec reciprocal(vec x) {
#if defined(__AVX512F__) && IS_FLOAT
    vec guess = (vec)_mm512_rcp14_ps((__m512)x);
    return guess * (2.0f - x * guess);
#elif defined(__AVX__) && IS_FLOAT
    vec guess = (vec)_mm256_rcp_ps((__m256)x);
    return guess * (2.0f - x * guess);
#else
    return (REAL)1 / x;
#endif
}

INLINE REAL square_root_of(REAL x) { return IS_FLOAT ? __builtin_sqrtf(x) : __builtin_sqrt(x); }

INLINE vec square_root(vec x) {
#if defined(__AVX__) && !defined(__AVX512F__) && IS_FLOAT
    return (vec)_mm256_sqrt_ps((__m256)x);
#elif defined(__AVX__) && !defined(__AVX512F__)
    return (vec)_mm256_sqrt_pd((__m256d)x);
#else
    for (long i = 0; i < LANES; i++) x[i] = square_root_of(x[i]);
    return x;
#endif
}

/* Where |x| is beyond this, 1 / (1 + exp(x)) is 0 or 1 to the last digit; exp(x) and its square stay finite. */
#undef SATURATED
#define SATURATED ((REAL)(IS_FLOAT ? 42.0 : 100.0))

/* exp(x) for |x| <= SATURATED, NaN for NaN: 2^n exp(r), with a polynomial that is exact to the last digit or so. */
INLINE vec exponential(vec x) {
#if IS_FLOAT
    const REAL shift = 12582912.0f; /* 1.5 * 2^23: adding it leaves round(x) in the low bits */
    vec n = x * 1.44269504f + shift;
    mask_vec power = (mask_vec)n << 23;
    n = n - shift;
    vec r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = r * 0.0013941118896f + 0.0083751347746f;
    p = p * r + 0.0416663527711f;
    p = p * r + 0.1666641541404f;
    p = p * r + 0.5000000047146f;
    p = p * r + 1.0000000377389f;
    p = p * r + 1.0f;
#else
    const REAL shift = 6755399441055744.0; /* 1.5 * 2^52 */
    vec n = x * 1.4426950408889634074 + shift;
    mask_vec power = (mask_vec)n << 52;
    n = n - shift;
    vec r = x - n * 0.693145751953125;
    r = r - n * 1.42860682030941723212e-6;
    vec p = r * 2.5110049204818660192e-8 + 2.7632654722527791884e-7;
    p = p * r + 2.7557240887229868595e-6;
    p = p * r + 2.4801485441561312966e-5;
    p = p * r + 1.9841269890076402829e-4;
    p = p * r + 1.3888888952352862866e-3;
    p = p * r + 8.3333333333195896163e-3;
    p = p * r + 4.1666666666487952520e-2;
    p = p * r + 1.6666666666666680820e-1;
    p = p * r + 5.0000000000000184039e-1;
    p = p * r + 1.0;
    p = p * r + 1.0;
#endif
    return (vec)((mask_vec)p + power);
}
