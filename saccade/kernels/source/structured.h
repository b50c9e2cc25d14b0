/* Common parts of the structure kernels. They work in double only: REAL is double here. */

#include <math.h>

#define FORBIDDEN (-1e30)
#define NEGLIGIBLE (-700.0) /* exp of anything less counts as 0 */

#define PADDED(size, to) (((size) + (to) - 1) / (to) * (to))
#define LINE 8 /* doubles: vectors that straddle two cache lines take twice as long to load */

/* Workspace, to be freed, from which `take` hands out parts aligned to cache lines: sizes are PADDED to lines. */
static double *workspace(long size) {
    return aligned_alloc(LINE * sizeof(double), PADDED(size, LINE) * sizeof(double));
}

INLINE double *take(double **space, long size) {
    double *taken = *space;
    *space += PADDED(size, LINE);
    return taken;
}

/* Input and output tables are float or double. */
INLINE void read_table(double *restrict to, const void *table, long start, long size, long floats) {
    if (floats)
        for (long i = 0; i < size; i++) to[i] = ((const float *)table)[start + i];
    else
        memcpy(to, (const double *)table + start, size * sizeof(double));
}

INLINE void write_table(void *table, long start, const double *restrict from, long size, long floats) {
    if (floats)
        for (long i = 0; i < size; i++) ((float *)table)[start + i] = (float)from[i];
    else
        memcpy((double *)table + start, from, size * sizeof(double));
}

INLINE void clear_table(void *table, long start, long size, long floats) {
    long bytes = floats ? sizeof(float) : sizeof(double);
    memset((char *)table + start * bytes, 0, size * bytes);
}

/* exp(x) of any x up to about 700, exactly 0 below NEGLIGIBLE. */
INLINE vec power_of_e(vec x) {
    mask_vec counts = x > NEGLIGIBLE;
    return choose(counts, exponential(choose(counts, x, splat(NEGLIGIBLE))), splat(0));
}

INLINE double power_of_e_one(double x) { return x > NEGLIGIBLE ? exp(x) : 0; }

/* to[i] = exp(from[i] - shift). */
static void exponentials(double *to, const double *from, double shift, long size) {
    long i = 0;
    for (; i + LANES <= size; i += LANES) store(to + i, power_of_e(load(from + i) - shift));
    for (; i < size; i++) to[i] = power_of_e_one(from[i] - shift);
}

static double maximum(const double *x, long size) {
    double best = FORBIDDEN;
    long i = 0;
    if (size >= LANES) {
        vec top = splat(FORBIDDEN);
        for (; i + LANES <= size; i += LANES) top = larger(load(x + i), top);
        best = largest(top);
    }
    for (; i < size; i++) best = x[i] > best ? x[i] : best;
    return best;
}

static double minimum(const double *x, long size) {
    double best = -x[0];
    long i = 0;
    if (size >= LANES) {
        vec top = splat(best);
        for (; i + LANES <= size; i += LANES) top = larger(-load(x + i), top);
        best = largest(top);
    }
    for (; i < size; i++) best = -x[i] > best ? -x[i] : best;
    return -best;
}

/* The log of the sum over i of exp(a[i] + b[i]). */
static double log_sum(const double *a, const double *b, long size) {
    vec highest = splat(4 * FORBIDDEN);
    long i = 0;
    for (; i + LANES <= size; i += LANES) highest = larger(load(a + i) + load(b + i), highest);
    double top = largest(highest);
    for (; i < size; i++) top = a[i] + b[i] > top ? a[i] + b[i] : top;
    vec sums = splat(0);
    for (i = 0; i + LANES <= size; i += LANES) sums += power_of_e(load(a + i) + load(b + i) - top);
    double sum = total(sums);
    for (; i < size; i++) sum += power_of_e_one(a[i] + b[i] - top);
    return top + log(sum);
}

/* The same, with its derivative when a and b change by da and db. */
static double log_sum_dual(const double *a, const double *b, const double *da, const double *db, long size,
                           double *change) {
    vec highest = splat(4 * FORBIDDEN);
    long i = 0;
    for (; i + LANES <= size; i += LANES) highest = larger(load(a + i) + load(b + i), highest);
    double top = largest(highest);
    for (; i < size; i++) top = a[i] + b[i] > top ? a[i] + b[i] : top;
    vec sums = splat(0), changes = splat(0);
    for (i = 0; i + LANES <= size; i += LANES) {
        vec weight = power_of_e(load(a + i) + load(b + i) - top);
        sums += weight;
        changes += weight * (load(da + i) + load(db + i));
    }
    double sum = total(sums), weighted = total(changes);
    for (; i < size; i++) {
        double weight = power_of_e_one(a[i] + b[i] - top);
        sum += weight;
        weighted += weight * (da[i] + db[i]);
    }
    *change = weighted / sum;
    return top + log(sum);
}

/* Backward through log_sum: ga[i] and gb[i] grow by the share of i in `sum`, times g. */
static void share(const double *a, const double *b, double sum, double g, double *ga, double *gb, long size) {
    if (g == 0) return;
    long i = 0;
    for (; i + LANES <= size; i += LANES) {
        vec part = power_of_e(load(a + i) + load(b + i) - sum) * g;
        store(ga + i, load(ga + i) + part);
        store(gb + i, load(gb + i) + part);
    }
    for (; i < size; i++) {
        double part = power_of_e_one(a[i] + b[i] - sum) * g;
        ga[i] += part;
        gb[i] += part;
    }
}

/* The same for the derivatives: dga and dgb grow by the derivatives of these shares. */
static void share_dual(const double *a, const double *b, const double *da, const double *db, double sum, double dsum,
                       double g, double dg, double *ga, double *gb, double *dga, double *dgb, long size) {
    if (g == 0 && dg == 0) return;
    long i = 0;
    for (; i + LANES <= size; i += LANES) {
        vec weight = power_of_e(load(a + i) + load(b + i) - sum);
        vec part = weight * g, change = part * (load(da + i) + load(db + i) - dsum) + weight * dg;
        store(ga + i, load(ga + i) + part);
        store(gb + i, load(gb + i) + part);
        store(dga + i, load(dga + i) + change);
        store(dgb + i, load(dgb + i) + change);
    }
    for (; i < size; i++) {
        double weight = power_of_e_one(a[i] + b[i] - sum);
        double part = weight * g, change = part * (da[i] + db[i] - dsum) + weight * dg;
        ga[i] += part;
        gb[i] += part;
        dga[i] += change;
        dgb[i] += change;
    }
}
