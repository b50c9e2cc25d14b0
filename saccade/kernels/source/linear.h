/* Linear layers whose weights are packed once, in float or as whole numbers of 8 bits. Float only.

   A packed weight is a row of panels of COLUMNS outputs, padded with zeros. A panel holds COLUMNS numbers for each input;
   one of whole numbers holds 4 inputs for each of COLUMNS outputs, and so on for every 4 inputs, as VNNI reads them. */

#define COLUMNS (2 * LANES)
#if defined(__AVX512F__)
#define TILE 12 /* rows whose sums stay in registers */
#else
#define TILE 6
#endif
/* As Python lays it out; `scales` and `sums` (out,) are null for float weights. All are padded to whole panels. */
struct linear {
    const void *packed;
    const float *bias, *scales;
    const int32_t *sums; /* 128 times the sum of each output's weights */
    long in, out;
};

/* Inputs (rows, in), `stride` numbers apart, and for weights of 8 bits the same as whole numbers. */
struct inputs {
    const float *x;
    long stride;
    uint8_t *whole; /* 128 + round(x / scale), rows of `in` rounded up to a multiple of 4 */
    float *scale;
};

enum { PLAIN, RELU, GELU };

INLINE long padded(long in) { return (in + 3) / 4 * 4; }

/* The number of outputs after which the next panel begins, and the numbers of 8 bits that processors multiply. */
long NAME(linear_columns)(void) { return COLUMNS; }

long NAME(linear_whole)(void) {
#if defined(__AVX512VNNI__)
    return 1;
#else
    return 0;
#endif
}

/* Sums (rows, COLUMNS) of a few rows and one panel; `rows` is a constant, so that they stay in registers. */
INLINE void tile(const struct inputs *from, long row, const struct linear *w, long panel, const int rows, float *to) {
    const float *x = from->x + row * from->stride, *weights = (const float *)w->packed + panel * COLUMNS * w->in;
    vec sums[TILE][2];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = (vec){0};
    for (long k = 0; k < w->in; k++, weights += COLUMNS) {
        vec left = load(weights), right = load(weights + LANES);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            vec value = splat(x[r * from->stride + k]);
            sums[r][0] += value * left;
            sums[r][1] += value * right;
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
        store(to + r * COLUMNS, sums[r][0]);
        store(to + r * COLUMNS + LANES, sums[r][1]);
    }
}

#if defined(__AVX512VNNI__)
typedef int32_t whole_vec __attribute__((vector_size(64)));
typedef int32_t four __attribute__((aligned(1), may_alias)); /* inputs of 8 bits */

static void to_whole(struct inputs *to, long rows, long in) {
    long full = in / LANES * LANES;
    for (long r = 0; r < rows; r++) {
        const float *x = to->x + r * to->stride;
        uint8_t *q = to->whole + r * padded(in);
        __m512 most = _mm512_setzero_ps();
        __mmask16 none = 0; /* NaN, which a maximum leaves out */
        for (long j = 0; j < full; j += LANES) {
            __m512 value = _mm512_loadu_ps(x + j);
            most = _mm512_max_ps(most, _mm512_abs_ps(value));
            none |= _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
        }
        float top = _mm512_reduce_max_ps(most);
        for (long j = full; j < in; j++) {
            top = __builtin_fabsf(x[j]) > top ? __builtin_fabsf(x[j]) : top;
            none |= x[j] != x[j];
        }
        float factor = top > 0 ? 127.0f / top : 0.0f;
        to->scale[r] = none ? __builtin_nanf("") : top / 127.0f;
        for (long j = 0; j < full; j += LANES) {
            __m512i value = _mm512_cvtps_epi32(_mm512_loadu_ps(x + j) * factor);
            _mm_storeu_si128((__m128i *)(q + j), _mm512_cvtepi32_epi8(_mm512_add_epi32(value, _mm512_set1_epi32(128))));
        }
        for (long j = full; j < in; j++) q[j] = 128 + (int)__builtin_rintf(x[j] * factor);
        for (long j = in; j < padded(in); j++) q[j] = 128; /* times a weight of 0 */
    }
}

INLINE void whole_tile(const struct inputs *from, long row, const struct linear *w, long panel, const int rows,
                       float *to) {
    long in = padded(w->in), column = panel * COLUMNS;
    const int8_t *weights = (const int8_t *)w->packed + panel * COLUMNS * in;
    const uint8_t *x = from->whole + row * in;
    whole_vec counts[TILE][2];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) counts[r][0] = counts[r][1] = (whole_vec){0};
    for (long k = 0; k < in; k += 4, weights += 4 * COLUMNS) {
        __m512i left = _mm512_loadu_si512(weights), right = _mm512_loadu_si512(weights + 4 * LANES);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            __m512i value = _mm512_set1_epi32(*(const four *)(x + r * in + k));
            /* written out, because compilers move the sums to memory and back around the intrinsic function */
            __asm__("vpdpbusd %2, %1, %0" : "+v"(counts[r][0]) : "v"(value), "v"(left));
            __asm__("vpdpbusd %2, %1, %0" : "+v"(counts[r][1]) : "v"(value), "v"(right));
        }
    }
    vec low = load(w->scales + column), high = load(w->scales + column + LANES);
    whole_vec low_sum = (whole_vec)_mm512_loadu_si512(w->sums + column);
    whole_vec high_sum = (whole_vec)_mm512_loadu_si512(w->sums + column + LANES);
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
        float scale = from->scale[row + r];
        store(to + r * COLUMNS, (vec)_mm512_cvtepi32_ps((__m512i)(counts[r][0] - low_sum)) * (low * scale));
        store(to + r * COLUMNS + LANES, (vec)_mm512_cvtepi32_ps((__m512i)(counts[r][1] - high_sum)) * (high * scale));
    }
}
#else
static void to_whole(struct inputs *to, long rows, long in) {}
INLINE void whole_tile(const struct inputs *from, long row, const struct linear *w, long panel, const int rows,
                       float *to) {}
#endif

/* erf(x) to 2e-7: Abramowitz and Stegun, formula 7.1.26. */
INLINE vec error_function(vec x) {
    vec size = larger(x, -x), t = 1.0f / (1.0f + 0.3275911f * size);
    vec p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    vec found = 1.0f - p * exponential(larger(splat(-SATURATED), -size * size));
    return choose(x < 0, -found, found);
}

INLINE vec activated(vec x, int activation) {
    if (activation == RELU) return larger((vec){0}, x);
    return activation == GELU ? 0.5f * x * (1.0f + error_function(x * 0.70710678f)) : x;
}

/* Sums of as many rows as fit, at most `rows`; returns their number. */
static long __attribute__((noinline)) some_rows(const struct linear *w, const struct inputs *from, long row, long panel,
                                                long rows, float *to) {
    const int few = TILE / 3, count = rows >= TILE ? TILE : rows >= few ? few : 1;
    if (w->scales) {
        if (count == TILE) whole_tile(from, row, w, panel, TILE, to);
        else if (count == few) whole_tile(from, row, w, panel, few, to);
        else whole_tile(from, row, w, panel, 1, to);
    } else {
        if (count == TILE) tile(from, row, w, panel, TILE, to);
        else if (count == few) tile(from, row, w, panel, few, to);
        else tile(from, row, w, panel, 1, to);
    }
    return count;
}

/* The outputs of panels from `begin` to `end`, added to what is there if `add`; y (rows, out), rows `stride` numbers
   apart, points to where the first output of all would be. */
static void __attribute__((noinline)) panels(const struct linear *w, const struct inputs *from, long rows, long begin,
                                             long end, float *y, long stride, int activation, int add) {
    float sums[TILE * COLUMNS];
    for (long panel = begin; panel < end; panel++) {
        long column = panel * COLUMNS, left = w->out - column < COLUMNS ? w->out - column : COLUMNS;
        for (long row = 0, done; row < rows; row += done) {
            done = some_rows(w, from, row, panel, rows - row, sums);
            for (long r = 0; r < done; r++) {
                float *to = y + (row + r) * stride + column, *sum = sums + r * COLUMNS;
                for (long j = 0; j < COLUMNS; j += LANES) {
                    vec value = activated(load(sum + j) + load(w->bias + column + j), activation);
                    if (j + LANES <= left) {
                        store(to + j, add ? load(to + j) + value : value);
                        continue;
                    }
                    store(sum + j, value);
                    for (long i = j; i < left; i++) to[i] = add ? to[i] + sum[i] : sum[i];
                }
            }
        }
    }
}

INLINE long panels_of(const struct linear *w) { return (w->out + COLUMNS - 1) / COLUMNS; }

static void linear(const struct linear *w, const struct inputs *from, long rows, float *y, long stride, int activation,
                   int add) {
    panels(w, from, rows, 0, panels_of(w), y, stride, activation, add);
}

/* Rows that are worth computing together: whole tiles, few enough for the processor's cache, of about equal numbers. */
INLINE long block_of(long rows, long most) {
    long blocks = (rows + most - 1) / most;
    return ((rows + blocks - 1) / (blocks ? blocks : 1) + TILE - 1) / TILE * TILE;
}

/* x (rows, in) -> y (rows, out). Work is counted in rows. Returns 0, or 1 if there is no memory. */
long NAME(linear)(const struct linear *w, const float *x, float *y, long activation, long first, long last) {
    long block = block_of(last - first, 120);
    uint8_t *whole = w->scales ? malloc(block * (padded(w->in) + sizeof(float)) + 64) : NULL;
    if (w->scales && !whole) return 1;
    for (long row = first; row < last; row += block) {
        long rows = last - row < block ? last - row : block;
        float *scale = (float *)(whole + block * padded(w->in));
        struct inputs from = {x + row * w->in, w->in, whole, scale};
        if (w->scales) to_whole(&from, rows, w->in);
        linear(w, &from, rows, y + row * w->out, w->out, activation, 0);
    }
    free(whole);
    return 0;
}

/* The `count` largest log-probabilities of x W^T + b, in descending order; ties go to the earlier class. Logits are
   computed a part at a time and never stored as a whole. `values` and `ids` (rows, count); see top_log_probs. */
long NAME(linear_top)(const struct linear *w, const float *x, const int64_t *without, long left_out, long count,
                      float *values, int64_t *ids, long first, long last) {
    const long part = 16; /* panels */
    long block = block_of(last - first, 96), width = part * COLUMNS;
    long floats = block * (width + 1), bytes = w->scales ? block * padded(w->in) : 0;
    float *logits = malloc((floats + block * 2) * sizeof(float) + block * sizeof(double) + bytes + 64);
    if (!logits) return 1;
    double *partitions = (double *)(logits + (block * (width + 2) + 1) / 2 * 2);
    float *scale = logits + block * width, *tops = scale + block;
    uint8_t *whole = (uint8_t *)(partitions + block);
    for (long begin = first; begin < last; begin += block) {
        long rows = last - begin < block ? last - begin : block;
        struct inputs from = {x + begin * w->in, w->in, whole, scale};
        if (w->scales) to_whole(&from, rows, w->in);
        for (long r = 0; r < rows; r++) {
            tops[r] = -__builtin_inff();
            partitions[r] = 0;
            for (long i = 0; i < count; i++) {
                values[(begin + r) * count + i] = -__builtin_inff();
                ids[(begin + r) * count + i] = i;
            }
        }
        for (long panel = 0; panel < panels_of(w); panel += part) {
            long end = panel + part < panels_of(w) ? panel + part : panels_of(w), column = panel * COLUMNS;
            long size = (end * COLUMNS < w->out ? end * COLUMNS : w->out) - column;
            panels(w, &from, rows, panel, end, logits - column, width, PLAIN, 0);
            for (long r = 0; r < rows; r++) {
                float *some = logits + r * width, *best = values + (begin + r) * count;
                int64_t *place = ids + (begin + r) * count;
                for (long j = size; j % LANES; j++) some[j] = -__builtin_inff();
                vec most = load(some), parts = {0};
                for (long j = LANES; j < size; j += LANES) most = larger(load(some + j), most);
                float top = largest(most);
                if (top > tops[r]) {
                    partitions[r] *= __builtin_exp(tops[r] - top);
                    tops[r] = top;
                }
                if (top == -__builtin_inff()) continue;
                for (long j = 0; j < size; j += LANES) parts += relative_exponential(load(some + j), tops[r]);
                partitions[r] += total(parts);
                if (top <= best[count - 1]) continue;
                for (long i = 0; i < left_out; i++)
                    if (without[i] >= column && without[i] < column + size) some[without[i] - column] = -__builtin_inff();
                for (long j = 0; j < size; j += LANES) {
                    if (!any(load(some + j) > best[count - 1])) continue;
                    for (long c = j; c < j + LANES && c < size; c++) {
                        if (!(some[c] > best[count - 1])) continue;
                        long i = count - 1;
                        for (; i > 0 && some[c] > best[i - 1]; i--) {
                            best[i] = best[i - 1];
                            place[i] = place[i - 1];
                        }
                        best[i] = some[c];
                        place[i] = column + c;
                    }
                }
            }
        }
        for (long r = 0; r < rows; r++)
            for (long i = 0; i < count; i++)
                values[(begin + r) * count + i] -= (float)(__builtin_log(partitions[r]) + tops[r]);
    }
    free(logits);
    return 0;
}
