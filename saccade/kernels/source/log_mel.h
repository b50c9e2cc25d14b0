/* Frames of sound to the logarithms of their mel bands. Float only. Each lane of a vector holds another frame, so the
   Fourier transform needs no shuffles. */

/* ln(x) for normal positive x, infinity and NaN: e ln(2) + ln(m) with m in [sqrt(1/2), sqrt(2)). The polynomial is that of
   Cephes' logf. */
INLINE vec logarithm(vec x) {
    mask_vec bits = (mask_vec)x - 0x3f3504f3; /* sqrt(1/2) */
    mask_vec power = bits >> 23;
    vec m = (vec)((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
    vec n = __builtin_convertvector(power, vec), square = m * m;
    vec p = m * 7.0376836292e-2f - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    vec y = p * m * square - n * 2.12194440e-4f - 0.5f * square;
    return choose(x < __builtin_inff(), m + y + n * 0.693359375f, x);
}

/* (re + i im) (cosine + i sine) */
INLINE void turned(vec re, vec im, float cosine, float sine, float *to) {
    store(to, re * cosine - im * sine);
    store(to + LANES, re * sine + im * cosine);
}

/* The discrete Fourier transform of `points` complex vectors, a power of two, in place: real parts, then imaginary
   ones. Frequency k ends at the place whose bits are those of k in reverse. Two halvings are done in each pass.
   waves[2 k] + i waves[2 k + 1] is exp(-2 pi i k / (2 points)). */
static void transform(float *data, long points, const float *waves) {
    long length = points;
    for (; length >= 4; length /= 4) {
        long quarter = length / 4, stride = 2 * points / length;
        for (long j = 0; j < quarter; j++) {
            const float *w1 = waves + 2 * stride * j, *w2 = waves + 4 * stride * j;
            float c1 = w1[0], s1 = w1[1], c2 = w2[0], s2 = w2[1], c3 = c1 * c2 - s1 * s2, s3 = c1 * s2 + s1 * c2;
            for (long block = j; block < points; block += length) {
                float *a = data + 2 * LANES * block, *b = a + 2 * LANES * quarter, *c = b + 2 * LANES * quarter;
                float *d = c + 2 * LANES * quarter;
                vec ar = load(a), ai = load(a + LANES), br = load(b), bi = load(b + LANES);
                vec cr = load(c), ci = load(c + LANES), dr = load(d), di = load(d + LANES);
                vec even_r = ar + cr, even_i = ai + ci, odd_r = br + dr, odd_i = bi + di;
                ar -= cr, ai -= ci, br -= dr, bi -= di;
                store(a, even_r + odd_r);
                store(a + LANES, even_i + odd_i);
                turned(even_r - odd_r, even_i - odd_i, c2, s2, b);
                turned(ar + bi, ai - br, c1, s1, c);
                turned(ar - bi, ai + br, c3, s3, d);
            }
        }
    }
    if (length == 2)
        for (long block = 0; block < points; block += 2) {
            float *a = data + 2 * LANES * block, *b = a + 2 * LANES;
            vec ar = load(a), ai = load(a + LANES), br = load(b), bi = load(b + LANES);
            store(a, ar + br);
            store(a + LANES, ai + bi);
            store(b, ar - br);
            store(b + LANES, ai - bi);
        }
}

/* The power at the frequencies 0..points of 2 * points real numbers, the even ones of which were the real parts, and the
   odd ones the imaginary parts, of what `transform` has transformed. */
static void powers(const float *data, long points, const int64_t *order, const float *waves, float *power) {
    for (long k = 0; k <= points / 2; k++) {
        const float *a = data + 2 * LANES * order[k], *b = data + 2 * LANES * order[k ? points - k : 0];
        vec ar = load(a), ai = load(a + LANES), br = load(b), bi = load(b + LANES);
        vec even_r = 0.5f * (ar + br), even_i = 0.5f * (ai - bi), odd_r = 0.5f * (ai + bi), odd_i = 0.5f * (br - ar);
        float cosine = waves[2 * k], sine = waves[2 * k + 1];
        vec re = odd_r * cosine - odd_i * sine, im = odd_r * sine + odd_i * cosine;
        vec sum_r = even_r + re, sum_i = even_i + im, less_r = even_r - re, less_i = even_i - im;
        store(power + LANES * k, sum_r * sum_r + sum_i * sum_i);
        store(power + LANES * (points - k), less_r * less_r + less_i * less_i);
    }
}

/* Rows first..last-1 of `out` (frames, mels). The window of frame t begins with sample start + t * hop; beyond the
   `count` samples there are zeros. 2 * points >= window is the size of the transform, `order` (points) reverses bits, and
   `waves` (points, 2) is as above. Band m covers bins[2 m] frequencies from bins[2 m + 1] on; `filters` has the weights
   of one band after another. Returns 1 if out of memory. */
int NAME(log_mel)(const float *samples, long count, long start, long hop, const float *shape, long window, long points,
                  const int64_t *order, const float *waves, const int64_t *bins, const float *filters, long mels,
                  double smallest, float *out, long first, long last) {
    long floats = LANES * (3 * points + 1 + mels);
    float *data = aligned_alloc(VECTOR_BYTES, floats * sizeof(float));
    if (!data) return 1;
    float *power = data + 2 * LANES * points, *bands = power + LANES * (points + 1);
    for (long frame = first; frame < last; frame += LANES) {
        long lanes = last - frame < LANES ? last - frame : LANES;
        memset(data, 0, 2 * LANES * points * sizeof(float));
        for (long lane = 0; lane < lanes; lane++) {
            long begin = start + (frame + lane) * hop;
            long from = begin < 0 ? -begin : 0, to = count - begin < window ? count - begin : window;
            for (long n = from; n < to; n++) data[LANES * n + lane] = samples[begin + n] * shape[n];
        }
        transform(data, points, waves);
        powers(data, points, order, waves, power);
        const float *weight = filters;
        for (long m = 0; m < mels; m++) {
            vec sum = {0};
            const float *covered = power + LANES * bins[2 * m + 1];
            for (long k = 0; k < bins[2 * m]; k++) sum += *weight++ * load(covered + LANES * k);
            store(bands + LANES * m, logarithm(larger(splat(smallest), sum)));
        }
        for (long lane = 0; lane < lanes; lane++)
            for (long m = 0; m < mels; m++) out[(frame + lane) * mels + m] = bands[LANES * m + lane];
    }
    free(data);
    return 0;
}
