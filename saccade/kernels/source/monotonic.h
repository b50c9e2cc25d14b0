/* Alignments that never move back: forward-backward in log space.

   Forward: alpha_t(j) = theta_t(j) + c_t(j), where c_t(j) is the log of the sum of exp alpha_{t-1}(k) over k <= j. */

/* Rows first..last-1 of unary (rows, steps, sources), mask (rows, steps) or NULL, ends (rows) or NULL. */
int NAME(monotonic_marginals)(const double *unary, const uint8_t *mask, const int64_t *ends, double *log_partition,
                              double *marginals, long steps, long sources, long first, long last) {
    double *work = malloc((2 * steps * sources + 3 * sources) * sizeof(double) + (steps + 1) * sizeof(long));
    if (!work) return -1;
    double *alpha = work, *sums = alpha + steps * sources, *grad = sums + steps * sources;
    double *ratio = grad + sources, *start = ratio + sources;
    long *places = (long *)(start + sources);
    for (long row = first; row < last; row++) {
        double *out = marginals + row * steps * sources;
        memset(out, 0, steps * sources * sizeof(double));
        long count = chain_places(mask ? mask + row * steps : NULL, steps, places);
        log_partition[row] = 0;
        if (count == 0) {
            if (ends && ends[row] > 0) log_partition[row] = FORBIDDEN; /* still at the first source */
            continue;
        }
        for (long i = 0; i < count; i++) {
            const double *theta = unary + (row * steps + places[i]) * sources, *before = alpha + (i - 1) * sources;
            double *here = alpha + i * sources, *c = sums + i * sources, top = 2 * FORBIDDEN, sum = 0;
            for (long j = 0; j < sources; j++) {
                double x = i ? before[j] : j ? FORBIDDEN : 0;
                if (x > top) {
                    sum = sum * power_of_e_one(top - x) + 1;
                    top = x;
                } else
                    sum += power_of_e_one(x - top);
                c[j] = top + log(sum);
                here[j] = theta[j] + c[j];
            }
        }
        const double *final = alpha + (count - 1) * sources;
        double top = ends ? final[ends[row]] : maximum(final, sources), sum = 0;
        memset(grad, 0, sources * sizeof(double));
        if (top > FORBIDDEN / 10) {
            exponentials(grad, final, top, sources);
            for (long j = 0; j < sources; j++) {
                if (ends) grad[j] = j == ends[row];
                sum += grad[j];
            }
        }
        log_partition[row] = sum > 0 ? top + log(sum) : FORBIDDEN;
        if (!(sum > 0)) continue;
        for (long j = 0; j < sources; j++) grad[j] /= sum;
        for (long i = count - 1; i >= 0; i--) {
            double *to = out + places[i] * sources, *c = sums + i * sources;
            memcpy(to, grad, sources * sizeof(double));
            if (i == 0) break;
            const double *before = alpha + (i - 1) * sources;
            for (long j = 0; j + 1 < sources; j++) ratio[j] = c[j] - c[j + 1];
            exponentials(ratio, ratio, 0, sources - 1);
            double later = 0; /* of the steps from here or later, in units of exp c */
            for (long j = sources - 1; j >= 0; j--) {
                later = grad[j] + (j + 1 < sources ? later * ratio[j] : 0);
                start[j] = later;
            }
            for (long j = 0; j < sources; j++) grad[j] = before[j] - c[j];
            exponentials(grad, grad, 0, sources);
            for (long j = 0; j < sources; j++) grad[j] *= start[j];
        }
    }
    free(work);
    return 0;
}
