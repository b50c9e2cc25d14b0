/* Sparsemax and entmax-1.5 of rows, exact and without a sort, and their gradients.

   With x = scores - max (halved for entmax) the weights are p = max(x - tau, 0) (squared for entmax), and tau lies in
   [-1, 0). So only scores within 1 (entmax: 2) of the largest can have weight: usually few. Newton's method on these,
   from tau = -1, rises to the tau at which the weights sum to one. */

#undef NEGATIVE_INFINITY
#define NEGATIVE_INFINITY ((REAL)-__builtin_inf())

/* Long sums are taken in runs of this many numbers, so that small numbers are not lost in a large sum. */
#undef RUN
#define RUN (64 * LANES)

#undef mask_bytes
#undef as_mask
#undef scan_row
#undef collect
#undef sparsemax_tau
#undef entmax15_tau
#undef normalise_row
#undef normalise_rows
#undef gradient_rows
#define mask_bytes NAME(mask_bytes)
#define as_mask NAME(as_mask)
#define scan_row NAME(scan_row)
#define collect NAME(collect)
#define sparsemax_tau NAME(sparsemax_tau)
#define entmax15_tau NAME(entmax15_tau)
#define normalise_row NAME(normalise_row)
#define normalise_rows NAME(normalise_rows)
#define gradient_rows NAME(gradient_rows)

typedef int8_t mask_bytes __attribute__((vector_size(VECTOR_BYTES / sizeof(REAL)), aligned(1), may_alias));

/* Converts one-byte bools to a vector mask. */
INLINE mask_vec as_mask(const uint8_t *from) {
    return __builtin_convertvector(*(const mask_bytes *)from, mask_vec) != 0;
}

/* The largest attendable score. With a mask, `masked` becomes the row with minus infinity where it is False.
   Sets *bad if an attendable score is not finite. */
INLINE REAL scan_row(const REAL *row, const uint8_t *mask, REAL *masked, long size, int *bad) {
    vec best = splat(NEGATIVE_INFINITY), zero = {0}, wrong = {0};
    long j = 0;
    for (; j + LANES <= size; j += LANES) {
        vec x = load(row + j);
        if (mask) {
            mask_vec keep = as_mask(mask + j);
            wrong += choose(keep, x - x, zero); /* x - x is NaN where x is not finite */
            x = choose(keep, x, splat(NEGATIVE_INFINITY));
            store(masked + j, x);
        } else {
            wrong += x - x;
        }
        best = larger(x, best);
    }
    REAL result = largest(best), wrong_sum = total(wrong);
    for (; j < size; j++) {
        REAL x = row[j];
        if (mask) {
            if (mask[j]) wrong_sum += x - x;
            else x = NEGATIVE_INFINITY;
            masked[j] = x;
        } else {
            wrong_sum += x - x;
        }
        result = x > result ? x : result;
    }
    if (wrong_sum != 0) *bad = 1;
    return result;
}

/* The scores >= `threshold`, minus `origin` and times `scale`, padded with minus infinity to whole vectors. */
INLINE long collect(const REAL *row, long size, REAL threshold, REAL origin, REAL scale, REAL *found) {
    long count = 0, j = 0;
    for (; j + LANES <= size; j += LANES) {
        vec x = load(row + j);
        count += pack((x - origin) * scale, x >= threshold, found + count);
    }
    for (; j < size; j++) {
        found[count] = (row[j] - origin) * scale;
        count += row[j] >= threshold;
    }
    store(found + count, splat(NEGATIVE_INFINITY));
    return count;
}

/* The sum of max(x - tau, 0) is piecewise linear, so Newton's method is exact once the support does not change. */
INLINE REAL sparsemax_tau(const REAL *x, long count) {
    REAL tau = -1;
    for (REAL before = count + 1;;) {
        vec sums = {0}, ones = {0};
        for (long start = 0; start < count; start += RUN) {
            vec part = {0};
            for (long j = start; j < count && j < start + RUN; j += LANES) {
                vec excess = larger(load(x + j) - tau, splat(0));
                part += excess;
                ones += choose(excess > 0, splat(1), splat(0));
            }
            sums += part;
        }
        REAL size = total(ones);
        if (size == 0) return tau; /* rounding, with millions of equal scores */
        tau += (total(sums) - 1) / size;
        if (size >= before) return tau;
        before = size;
    }
}

/* Newton's method on the norm |max(x - tau, 0)| - 1, which is convex and nearly linear, so that it never passes the
   root and converges fast; then the quadratic equation on the support, which is exact once the support is. */
INLINE REAL entmax15_tau(const REAL *x, long count) {
    const REAL near = IS_FLOAT ? (REAL)1e-2 : (REAL)1e-4, small = IS_FLOAT ? (REAL)1e-4 : (REAL)1e-8;
    REAL tau = -1;
    for (int iteration = 0; iteration < 64; iteration++) {
        vec sums = {0}, squares = {0}, ones = {0};
        for (long start = 0; start < count; start += RUN) {
            vec part = {0}, square_part = {0};
            for (long j = start; j < count && j < start + RUN; j += LANES) {
                vec excess = larger(load(x + j) - tau, splat(0));
                part += excess;
                square_part += excess * excess;
                ones += choose(excess > 0, splat(1), splat(0));
            }
            sums += part;
            squares += square_part;
        }
        REAL sum = total(sums), square = total(squares), over = square - 1;
        if (sum == 0) break; /* rounding, with millions of equal scores */
        if (over > near) {
            tau += (square - square_root_of(square)) / sum;
            continue;
        }
        REAL discriminant = sum * sum - total(ones) * over;
        tau += over / (sum + square_root_of(discriminant > 0 ? discriminant : 0));
        if (over < small && over > -small) break; /* the remaining error is of the order of its square */
    }
    return tau;
}

/* One row; `found` has room for the row and one more vector. Sets *bad if an attendable score is not finite. */
INLINE void normalise_row(const REAL *row, const uint8_t *mask, REAL *p, long size, REAL *found, int entmax, int *bad) {
    REAL max = scan_row(row, mask, p, size, bad);
    if (mask) row = p;
    if (*bad || max == NEGATIVE_INFINITY) {
        memset(p, 0, size * sizeof(REAL));
        return;
    }
    REAL scale = entmax ? (REAL)0.5 : 1;
    long count = collect(row, size, max - 1 / scale, max, scale, found);
    REAL tau = entmax ? entmax15_tau(found, count) : sparsemax_tau(found, count);
    long j = 0;
    for (; j + LANES <= size; j += LANES) {
        vec x = larger((load(row + j) - max) * scale - tau, splat(0));
        store(p + j, entmax ? x * x : x);
    }
    for (; j < size; j++) {
        REAL x = (row[j] - max) * scale - tau;
        x = x > 0 ? x : 0;
        p[j] = entmax ? x * x : x;
    }
}

INLINE int normalise_rows(const REAL *scores, const uint8_t *mask, REAL *out, long size, long first, long last,
                          int entmax) {
    if (size == 0) return 0;
    REAL *found = malloc((size + LANES) * sizeof(REAL));
    if (!found) return -1;
    int bad = 0;
    for (long i = first; i < last && !bad; i++)
        normalise_row(scores + i * size, mask ? mask + i * size : NULL, out + i * size, size, found, entmax, &bad);
    free(found);
    return bad;
}

/* s (g - sum s g / sum s), where s is 1 on the support (sparsemax) or the square root of the weight (entmax). */
INLINE void gradient_rows(const REAL *weights, const REAL *grad, REAL *out, long size, long first, long last,
                          int entmax) {
    /* Long rows are nearly all zeros, so checking for them pays; in short ones the branch is unpredictable. */
    const int skip = size > 32 * LANES;
    for (long i = first; i < last; i++) {
        const REAL *p = weights + i * size, *g = grad + i * size;
        REAL *o = out + i * size;
        vec above = {0}, below = {0}, zero = {0};
        long whole = size / LANES * LANES;
        for (long j = 0; j < whole; j += LANES) {
            vec x = load(p + j);
            mask_vec support = x > 0;
            if (skip && !any(support)) {
                store(o + j, zero);
                continue;
            }
            vec s = entmax ? square_root(x) : choose(support, splat(1), zero);
            above += choose(support, s * load(g + j), zero);
            below += s;
            store(o + j, s);
        }
        REAL numerator = total(above), denominator = total(below);
        for (long j = whole; j < size; j++) {
            o[j] = entmax ? square_root_of(p[j]) : p[j] > 0;
            if (p[j] > 0) numerator += o[j] * g[j];
            denominator += o[j];
        }
        REAL mean = denominator > 0 ? numerator / denominator : 0;
        for (long j = 0; j < whole; j += LANES) {
            vec s = load(o + j);
            mask_vec support = s > 0;
            if (skip && !any(support)) continue;
            store(o + j, choose(support, s * (load(g + j) - mean), zero));
        }
        for (long j = whole; j < size; j++) o[j] = o[j] > 0 ? o[j] * (g[j] - mean) : 0;
    }
}

/* Rows first..last-1. Returns 0, 1 if a score that may be attended is not finite, -1 if out of memory. `mask` may
   be NULL. */
int NAME(sparsemax_forward)(const REAL *scores, const uint8_t *mask, REAL *out, long size, long first, long last) {
    return normalise_rows(scores, mask, out, size, first, last, 0);
}

int NAME(entmax15_forward)(const REAL *scores, const uint8_t *mask, REAL *out, long size, long first, long last) {
    return normalise_rows(scores, mask, out, size, first, last, 1);
}

void NAME(sparsemax_backward)(const REAL *weights, const REAL *grad, REAL *out, long size, long first, long last) {
    gradient_rows(weights, grad, out, size, first, last, 0);
}

void NAME(entmax15_backward)(const REAL *weights, const REAL *grad, REAL *out, long size, long first, long last) {
    gradient_rows(weights, grad, out, size, first, last, 1);
}
