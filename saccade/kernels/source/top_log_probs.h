/* The largest log-probabilities of rows of logits, in descending order; ties go to the earlier class. */

/* `values` and `ids` (rows, count). `without` lists classes that count in the sum but are not chosen: their logits are
   removed from the row while it is searched. Work is counted in rows. If logits are NaN, so are the values. */
void NAME(top_log_probs)(REAL *logits, const int64_t *without, long left_out, long vocab, long count, REAL *values,
                         int64_t *ids, long first, long last) {
    long whole = vocab / LANES * LANES;
    REAL kept[left_out + 1];
    for (long row = first; row < last; row++) {
        REAL *x = logits + row * vocab, *best = values + row * count;
        int64_t *place = ids + row * count;
        vec most = splat(x[0]), parts = {0};
        for (long j = 0; j < whole; j += LANES) most = larger(load(x + j), most);
        REAL top = largest(most);
        for (long j = whole; j < vocab; j++) top = x[j] > top ? x[j] : top;
        for (long j = 0; j < whole; j += LANES) parts += relative_exponential(load(x + j), top);
        double partition = total(parts);
        for (long j = whole; j < vocab; j++) partition += relative_exponential(splat(x[j]), top)[0];
        REAL log_partition = __builtin_log(partition) + top;

        for (long i = 0; i < left_out; i++) {
            kept[i] = x[without[i]];
            x[without[i]] = -__builtin_inf();
        }
        for (long i = 0; i < count; i++) {
            best[i] = -__builtin_inf();
            place[i] = i;
        }
        for (long j = 0; j < vocab; j += LANES) {
            long end = vocab;
            if (j < whole) {
                end = j + LANES;
                if (!any(load(x + j) > best[count - 1])) continue;
            }
            for (long c = j; c < end; c++) {
                if (!(x[c] > best[count - 1])) continue;
                long i = count - 1;
                for (; i > 0 && x[c] > best[i - 1]; i--) {
                    best[i] = best[i - 1];
                    place[i] = place[i - 1];
                }
                best[i] = x[c];
                place[i] = c;
            }
        }
        for (long i = 0; i < count; i++) best[i] -= log_partition;
        for (long i = left_out; i-- > 0;) x[without[i]] = kept[i];
    }
}
