/* The cross-entropy of rows of logits, which become its gradient in place.

   loss = (1 - s) (log Z - x_t) + s (log Z - mean of x_j over j >= first),   Z = sum_j exp(x_j)
   d loss / d x_j = exp(x_j) / Z - (1 - s) [j = t] - s / (vocab - first) [j >= first] */

#undef ROW_BLOCK
#define ROW_BLOCK 32L

#undef cross_entropy_row
#define cross_entropy_row NAME(cross_entropy_row)

/* exp(x - largest), where x - largest <= 0: below -SATURATED it is negligible compared with 1. */
#undef relative_exponential
#define relative_exponential NAME(relative_exponential)
INLINE vec relative_exponential(vec x, REAL largest) {
    x -= largest;
    return exponential(larger(splat(-SATURATED), x)); /* NaN stays NaN */
}

/* Returns the loss; `plain` is the loss without smoothing, `right` whether the target is the first of the largest
   logits. */
static REAL cross_entropy_row(REAL *x, const REAL *bias, long target, double smoothing, long first, long vocab,
                              int derive, REAL *bias_sums, REAL *plain, int32_t *right) {
    long whole = vocab / LANES * LANES;
    vec most = splat(x[0] + (bias ? bias[0] : 0)), sums = {0};
    for (long j = 0; j < whole; j += LANES) {
        vec value = load(x + j);
        if (bias) store(x + j, value += load(bias + j));
        most = larger(value, most);
        sums += value;
    }
    REAL top = largest(most);
    double sum = total(sums);
    for (long j = whole; j < vocab; j++) {
        if (bias) x[j] += bias[j];
        top = x[j] > top ? x[j] : top;
        sum += x[j];
    }
    for (long j = 0; j < first; j++) sum -= x[j];
    REAL wanted = x[target];
    *right = wanted == top;
    for (long j = 0; *right && j < target; j++) *right = x[j] != top;

    vec parts = {0};
    for (long j = 0; j < whole; j += LANES) {
        vec e = relative_exponential(load(x + j), top);
        parts += e;
        if (derive) store(x + j, e);
    }
    double partition = total(parts);
    for (long j = whole; j < vocab; j++) {
        REAL e = relative_exponential(splat(x[j]), top)[0];
        partition += e;
        if (derive) x[j] = e;
    }
    double log_partition = __builtin_log(partition) + top;
    if (derive) {
        REAL scale = 1 / partition, alike = smoothing / (vocab - first);
        for (long j = 0; j < whole; j += LANES) {
            vec g = load(x + j) * scale - alike;
            store(x + j, g);
            if (bias) store(bias_sums + j, load(bias_sums + j) + g);
        }
        for (long j = whole; j < vocab; j++) {
            x[j] = x[j] * scale - alike;
            if (bias) bias_sums[j] += x[j];
        }
        for (long j = 0; j < first; j++) {
            x[j] += alike;
            if (bias) bias_sums[j] += alike;
        }
        x[target] -= 1 - smoothing;
        if (bias) bias_sums[target] -= 1 - smoothing;
    }
    *plain = log_partition - wanted;
    return (1 - smoothing) * (log_partition - wanted) + smoothing * (log_partition - sum / (vocab - first));
}

/* Work is counted in blocks of ROW_BLOCK rows; each has its own row of `bias_sums` (blocks, vocab), the gradient of the
   bias, so that no two threads add to the same number and the sum does not depend on the number of threads. */
void NAME(cross_entropy)(REAL *logits, const REAL *bias, const int64_t *targets, double smoothing, long first_class,
                         long rows, long vocab, long derive, REAL *losses, REAL *plain, int32_t *right, REAL *bias_sums,
                         long first, long last) {
    for (long item = first; item < last; item++) {
        long end = (item + 1) * ROW_BLOCK < rows ? (item + 1) * ROW_BLOCK : rows;
        REAL *sums = bias_sums ? bias_sums + item * vocab : 0;
        if (derive && bias) memset(sums, 0, vocab * sizeof(REAL));
        for (long row = item * ROW_BLOCK; row < end; row++)
            losses[row] = cross_entropy_row(logits + row * vocab, bias, targets[row], smoothing, first_class, vocab,
                                            derive, sums, plain + row, right + row);
    }
}

long NAME(cross_entropy_items)(long rows) { return (rows + ROW_BLOCK - 1) / ROW_BLOCK; }
