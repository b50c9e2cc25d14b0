/* Projective trees: Eisner's inside-outside algorithm over words, with roots added at the end, and its derivative.

   Tables (n, n): right[s][t] is the weight of the words s..t below s, left[s][t] below t, split[s][t] that of an arc
   between s and t without the arc. Tables that are read along their first index have a transposed twin. */

typedef struct {
    double *right, *right_end, *left, *left_end, *split, *open_right, *open_left_end, *before, *opened;
} eisner_tables;

static eisner_tables eisner_new(double **space, long size) {
    long square = size * size;
    eisner_tables it;
    it.right = take(space, square);
    it.right_end = take(space, square);
    it.left = take(space, square);
    it.left_end = take(space, square);
    it.split = take(space, square);
    it.open_right = take(space, square);
    it.open_left_end = take(space, square);
    it.before = take(space, size + 1); /* the words before t, all below roots */
    it.opened = take(space, size + 1); /* those up to t, where t is a root whose dependents on the right are still to come */
    return it;
}

#define EISNER_SPACE(size) (7 * PADDED((size) * (size), LINE) + 2 * PADDED((size) + 1, LINE))

/* arcs (n, n), rows = dependents. With darcs, dv is filled with the changes. Returns the log-partition. */
static double eisner_inside(const double *arcs, const double *darcs, long n, int single, eisner_tables v,
                            eisner_tables dv, double *dtotal) {
    double change = 0;
#define SUM(a, b, da, db, size) (darcs ? log_sum_dual(a, b, da, db, size, &change) : log_sum(a, b, size))
    for (long s = 0; s < n; s++) {
        v.right[s * n + s] = v.right_end[s * n + s] = v.left[s * n + s] = v.left_end[s * n + s] = 0;
        if (darcs) dv.right[s * n + s] = dv.right_end[s * n + s] = dv.left[s * n + s] = dv.left_end[s * n + s] = 0;
    }
    for (long width = 1; width < n; width++)
        for (long s = 0; s + width < n; s++) {
            long t = s + width, forth = s * n + t, back = t * n + s;
            double split = SUM(v.right + s * n + s, v.left_end + t * n + s + 1, dv.right + s * n + s,
                               dv.left_end + t * n + s + 1, width);
            v.split[forth] = split;
            v.open_right[forth] = split + arcs[back];
            v.open_left_end[back] = split + arcs[forth];
            if (darcs) {
                dv.split[forth] = change;
                dv.open_right[forth] = change + darcs[back];
                dv.open_left_end[back] = change + darcs[forth];
            }
            v.right[forth] = v.right_end[back] =
                SUM(v.open_right + s * n + s + 1, v.right_end + t * n + s + 1, dv.open_right + s * n + s + 1,
                    dv.right_end + t * n + s + 1, width);
            if (darcs) dv.right[forth] = dv.right_end[back] = change;
            v.left[forth] = v.left_end[back] = SUM(v.left + s * n + s, v.open_left_end + t * n + s,
                                                   dv.left + s * n + s, dv.open_left_end + t * n + s, width);
            if (darcs) dv.left[forth] = dv.left_end[back] = change;
        }
    if (single) {
        for (long u = 0; u < n; u++) {
            v.opened[u] = v.left[u] + arcs[u * n + u];
            if (darcs) dv.opened[u] = dv.left[u] + darcs[u * n + u];
        }
        double sum = SUM(v.opened, v.right_end + (n - 1) * n, dv.opened, dv.right_end + (n - 1) * n, n);
        *dtotal = change;
        return sum;
    }
    v.before[0] = 0;
    if (darcs) dv.before[0] = 0;
    for (long t = 0; t < n; t++) {
        v.opened[t] = SUM(v.before, v.left_end + t * n, dv.before, dv.left_end + t * n, t + 1) + arcs[t * n + t];
        if (darcs) dv.opened[t] = change + darcs[t * n + t];
        v.before[t + 1] = SUM(v.opened, v.right_end + t * n, dv.opened, dv.right_end + t * n, t + 1);
        if (darcs) dv.before[t + 1] = change;
    }
    *dtotal = darcs ? dv.before[n] : 0;
    return v.before[n];
#undef SUM
}

/* g and dg are zero initially; marginals (n, n) or, with darcs, their derivatives. */
static void eisner_outside(const double *arcs, const double *darcs, long n, int single, eisner_tables v,
                           eisner_tables dv, double sum, double dsum, eisner_tables g, eisner_tables dg,
                           double *marginals) {
#define SHARE(x, i, y, j, sum, dsum, weight, change, size)                                                          \
    do {                                                                                                            \
        if (darcs)                                                                                                  \
            share_dual(v.x + (i), v.y + (j), dv.x + (i), dv.y + (j), sum, dsum, weight, change, g.x + (i),          \
                       g.y + (j), dg.x + (i), dg.y + (j), size);                                                    \
        else                                                                                                        \
            share(v.x + (i), v.y + (j), sum, weight, g.x + (i), g.y + (j), size);                                   \
    } while (0)
#define RESULT(table, i) (darcs ? dg.table[i] : g.table[i])
    if (single) {
        SHARE(opened, 0, right_end, (n - 1) * n, sum, dsum, 1, 0, n);
        for (long u = 0; u < n; u++) {
            g.left[u] += g.opened[u];
            if (darcs) dg.left[u] += dg.opened[u];
            marginals[u * n + u] = RESULT(opened, u);
        }
    } else {
        g.before[n] = 1;
        for (long t = n - 1; t >= 0; t--) {
            SHARE(opened, 0, right_end, t * n, v.before[t + 1], darcs ? dv.before[t + 1] : 0, g.before[t + 1],
                  darcs ? dg.before[t + 1] : 0, t + 1);
            marginals[t * n + t] = RESULT(opened, t);
            SHARE(before, 0, left_end, t * n, v.opened[t] - arcs[t * n + t],
                  darcs ? dv.opened[t] - darcs[t * n + t] : 0, g.opened[t], darcs ? dg.opened[t] : 0, t + 1);
        }
    }
    for (long width = n - 1; width > 0; width--)
        for (long s = 0; s + width < n; s++) {
            long t = s + width, forth = s * n + t, back = t * n + s;
            SHARE(open_right, s * n + s + 1, right_end, t * n + s + 1, v.right[forth], darcs ? dv.right[forth] : 0,
                  g.right[forth] + g.right_end[back], darcs ? dg.right[forth] + dg.right_end[back] : 0, width);
            SHARE(left, s * n + s, open_left_end, t * n + s, v.left[forth], darcs ? dv.left[forth] : 0,
                  g.left[forth] + g.left_end[back], darcs ? dg.left[forth] + dg.left_end[back] : 0, width);
            marginals[back] = RESULT(open_right, forth);
            marginals[forth] = RESULT(open_left_end, back);
            SHARE(right, s * n + s, left_end, t * n + s + 1, v.split[forth], darcs ? dv.split[forth] : 0,
                  g.open_right[forth] + g.open_left_end[back],
                  darcs ? dg.open_right[forth] + dg.open_left_end[back] : 0, width);
        }
#undef SHARE
#undef RESULT
}

/* The rows and columns of present words of a table (n, n) at `start`; `places` lists these words.
   Returns their number. */
static long compress(const void *table, long start, const uint8_t *present, double *to, long *places, long n,
                     long floats) {
    long count = 0;
    for (long i = 0; i < n; i++)
        if (!present || present[i]) places[count++] = i;
    if (count == n)
        read_table(to, table, start, n * n, floats);
    else
        for (long d = 0; d < count; d++)
            for (long h = 0; h < count; h++)
                read_table(to + d * count + h, table, start + places[d] * n + places[h], 1, floats);
    return count;
}

/* The reverse, into a table of zeros. */
static void expand(const double *from, void *table, long start, const long *places, long count, long n, long floats) {
    if (count == n) {
        write_table(table, start, from, n * n, floats);
        return;
    }
    for (long d = 0; d < count; d++)
        for (long h = 0; h < count; h++)
            write_table(table, start + places[d] * n + places[h], from + d * count + h, 1, floats);
}

/* Rows first..last-1 of arcs (rows, n, n), present (rows, n) or NULL and direction (rows, n, n) or NULL, as in
   chain_rows. */
static int eisner_run(const void *arcs, const uint8_t *present, const void *direction, double *log_partition,
                      void *marginals, long floats, long n, long single, long first, long last) {
    long square = n * n, tables = EISNER_SPACE(n), kinds = direction ? 4 : 2;
    double *work = workspace(3 * PADDED(square, LINE) + kinds * tables + PADDED(n + 1, LINE));
    if (!work) return -1;
    for (long row = first; row < last; row++) {
        double *space = work, dsum = 0;
        double *own = take(&space, square), *change = take(&space, square);
        double *result = take(&space, square);
        long *places = (long *)take(&space, n + 1);
        const uint8_t *here = present ? present + row * n : NULL;
        long count = compress(arcs, row * square, here, own, places, n, floats);
        clear_table(marginals, row * square, square, floats);
        if (count == 0) {
            if (log_partition) log_partition[row] = 0;
            continue;
        }
        if (direction) compress(direction, row * square, here, change, places, n, floats);
        const double *darcs = direction ? change : NULL;
        eisner_tables v = eisner_new(&space, n), g = eisner_new(&space, n), dv = v, dg = g;
        if (direction) dv = eisner_new(&space, n), dg = eisner_new(&space, n);
        double sum = eisner_inside(own, darcs, count, single, v, dv, &dsum);
        if (log_partition) log_partition[row] = sum > FORBIDDEN / 10 ? sum : FORBIDDEN;
        if (sum <= FORBIDDEN / 10) continue;
        memset(g.right, 0, tables * sizeof(double));
        if (direction) memset(dg.right, 0, tables * sizeof(double));
        eisner_outside(own, darcs, count, single, v, dv, sum, dsum, g, dg, result);
        expand(result, marginals, row * square, places, count, n, floats);
    }
    free(work);
    return 0;
}

int NAME(projective_marginals)(const void *arcs, const uint8_t *present, double *log_partition, void *marginals,
                               long floats, long n, long single, long first, long last) {
    return eisner_run(arcs, present, NULL, log_partition, marginals, floats, n, single, first, last);
}

int NAME(projective_derivative)(const void *arcs, const uint8_t *present, const void *direction, void *marginals,
                                long floats, long n, long single, long first, long last) {
    return eisner_run(arcs, present, direction, NULL, marginals, floats, n, single, first, last);
}
