/* Steps of skip-gram with negative sampling: gradients of a batch of centres, then their updates.

   For a centre with the vector v and a target with the vector u, the error is sigma(v . u) - 1 if the target is a
   context, and sigma(v . u) times the number of contexts that are other words if it is a negative. */

#undef dot_product
#undef add_multiple
#undef target_errors
#define dot_product NAME(dot_product)
#define add_multiple NAME(add_multiple)
#define target_errors NAME(target_errors)

/* Four sums: one alone would wait for its own last addition. */
INLINE REAL dot_product(const REAL *a, const REAL *b, long size) {
    vec sums[4] = {{0}, {0}, {0}, {0}};
    long i = 0;
    for (; i + 4 * LANES <= size; i += 4 * LANES)
        for (long part = 0; part < 4; part++)
            sums[part] += load(a + i + part * LANES) * load(b + i + part * LANES);
    for (; i + LANES <= size; i += LANES) sums[0] += load(a + i) * load(b + i);
    REAL sum = total((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; i < size; i++) sum += a[i] * b[i];
    return sum;
}

INLINE void add_multiple(REAL *to, const REAL *x, REAL factor, long size) {
    long i = 0;
    for (; i + LANES <= size; i += LANES) store(to + i, load(to + i) + load(x + i) * factor);
    for (; i < size; i++) to[i] += x[i] * factor;
}

/* The errors of one centre's targets, contexts first; `room` is their number rounded up to whole vectors. */
INLINE void target_errors(const REAL *v, const REAL *outer, const int64_t *contexts, const uint8_t *real,
                          const int64_t *negatives, long width, long drawn, long size, REAL *errors, long room) {
    long count = 0;
    for (long j = 0; j < width; j++) {
        errors[j] = real[j] ? dot_product(v, outer + contexts[j] * size, size) : 0;
        count += real[j];
    }
    for (long k = 0; k < drawn; k++) errors[width + k] = dot_product(v, outer + negatives[k] * size, size);
    for (long j = width + drawn; j < room; j++) errors[j] = 0;
    for (long j = 0; j < room; j += LANES) {
        vec x = larger(splat(-SATURATED), -larger(splat(-SATURATED), load(errors + j)));
        store(errors + j, reciprocal(1 + exponential(x)));
    }
    for (long j = 0; j < width; j++) errors[j] = real[j] ? errors[j] - 1 : 0;
    for (long k = 0; k < drawn; k++) {
        long others = count;
        for (long j = 0; j < width; j++) others -= real[j] && contexts[j] == negatives[k];
        errors[width + k] *= others;
    }
}

/* `inner` and `outer` (vocab, size) change in place, one batch of `batch` centres after the other, each with its own
   rate. `contexts` and `real` (centres, width), `negatives` (centres, drawn), `errors` (batch, room) and `gradients`
   (batch, size) are working space. Work is counted in batches; it must stay in one part. */
void NAME(skip_gram)(REAL *inner, REAL *outer, const int64_t *centres, const int64_t *contexts, const uint8_t *real,
                     const int64_t *negatives, const double *rates, long count, long batch, long width, long drawn,
                     long size, REAL *errors, REAL *gradients, long first, long last) {
    long room = (width + drawn + LANES - 1) / LANES * LANES;
    for (long item = first; item < last; item++) {
        long start = item * batch, end = start + batch < count ? start + batch : count;
        REAL rate = -rates[item];
        for (long row = start; row < end; row++) {
            const int64_t *near = contexts + row * width, *others = negatives + row * drawn;
            REAL *error = errors + (row - start) * room, *gradient = gradients + (row - start) * size;
            target_errors(inner + centres[row] * size, outer, near, real + row * width, others, width, drawn, size,
                          error, room);
            memset(gradient, 0, size * sizeof(REAL));
            for (long j = 0; j < width + drawn; j++) {
                int64_t target = j < width ? near[j] : others[j - width];
                if (error[j] != 0) add_multiple(gradient, outer + target * size, error[j], size);
            }
        }
        for (long row = start; row < end; row++) {
            const REAL *error = errors + (row - start) * room;
            for (long j = 0; j < width + drawn; j++) {
                int64_t target = j < width ? contexts[row * width + j] : negatives[row * drawn + j - width];
                if (error[j] != 0)
                    add_multiple(outer + target * size, inner + centres[row] * size, rate * error[j], size);
            }
        }
        for (long row = start; row < end; row++)
            add_multiple(inner + centres[row] * size, gradients + (row - start) * size, rate, size);
    }
}
