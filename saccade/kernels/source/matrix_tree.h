/* Non-projective trees: elimination of one word after another, its gradient, and the derivative of that.

   a[i][j] grows by a[i][k] a[k][j] / d[k], d[k] being all that leads away from k; roots stand on the diagonal. Nothing
   is ever subtracted, so that nothing cancels. With a single root, d[k] leaves out the way to the root: that is the
   part of the determinant that is linear in the roots. */

#define TREE_RANGE 300.0

INLINE double dot(const double *x, const double *y, long size) {
    vec sums = splat(0);
    long i = 0;
    for (; i + LANES <= size; i += LANES) sums += load(x + i) * load(y + i);
    double sum = total(sums);
    for (; i < size; i++) sum += x[i] * y[i];
    return sum;
}

/* A matrix (n, n) whose diagonal stands apart: roots. */
typedef struct {
    double *a, *root;
} rooted;

/* m becomes the eliminated matrix, dm its change if `dual`; d, dd (n). Returns 1 if nothing leads away from a word. */
static int tree_eliminate(rooted m, rooted dm, double *d, double *dd, long n, int single, int dual) {
    for (long k = n - 1; k >= 0; k--) {
        const double *row = m.a + k * n, *drow = dm.a + k * n;
        int counted = !single || k == 0;
        double sum = counted ? m.root[k] : 0, dsum = dual && counted ? dm.root[k] : 0;
        for (long j = 0; j < k; j++) sum += row[j];
        if (dual)
            for (long j = 0; j < k; j++) dsum += drow[j];
        if (!(sum > 0)) return 1;
        d[k] = sum;
        dd[k] = dsum;
        for (long i = 0; i < k; i++) {
            double factor = m.a[i * n + k] / sum, dfactor = dual ? (dm.a[i * n + k] - factor * dsum) / sum : 0;
            double *to = m.a + i * n, *dto = dm.a + i * n; /* what falls on the diagonal is never looked at */
            long j = 0;
            if (dual) {
                for (; j + LANES <= k; j += LANES) {
                    vec r = load(row + j);
                    store(to + j, load(to + j) + factor * r);
                    store(dto + j, load(dto + j) + dfactor * r + factor * load(drow + j));
                }
                for (; j < k; j++) {
                    to[j] += factor * row[j];
                    dto[j] += dfactor * row[j] + factor * drow[j];
                }
                dm.root[i] += dfactor * m.root[k] + factor * dm.root[k];
            } else {
                for (; j + LANES <= k; j += LANES) store(to + j, load(to + j) + factor * load(row + j));
                for (; j < k; j++) to[j] += factor * row[j];
            }
            m.root[i] += factor * m.root[k];
        }
    }
    return 0;
}

/* One look at `from` for two things: its dot product with `row`, which is returned, and b += into * from. */
INLINE double dot_and_add(const double *from, const double *row, double *b, double into, long size) {
    vec sums = splat(0);
    long j = 0;
    for (; j + LANES <= size; j += LANES) {
        vec x = load(from + j);
        sums += x * load(row + j);
        store(b + j, load(b + j) + into * x);
    }
    double sum = total(sums);
    for (; j < size; j++) {
        sum += from[j] * row[j];
        b[j] += into * from[j];
    }
    return sum;
}

/* The same, and what both change by. */
INLINE double dot_and_add_dual(const double *from, const double *dfrom, const double *row, const double *drow,
                               double *b, double *db, double into, double dinto, long size, double *change) {
    vec sums = splat(0), changes = splat(0);
    long j = 0;
    for (; j + LANES <= size; j += LANES) {
        vec x = load(from + j), dx = load(dfrom + j), r = load(row + j);
        sums += x * r;
        changes += dx * r + x * load(drow + j);
        store(b + j, load(b + j) + into * x);
        store(db + j, load(db + j) + into * dx + dinto * x);
    }
    double sum = total(sums);
    *change = total(changes);
    for (; j < size; j++) {
        sum += from[j] * row[j];
        *change += dfrom[j] * row[j] + from[j] * drow[j];
        b[j] += into * from[j];
        db[j] += into * dfrom[j] + dinto * from[j];
    }
    return sum;
}

/* g: the derivative of the log-partition by the entries of the matrix, zero on the diagonal; dg: its change. b, db (n)
   are space to work in. */
static void tree_gradient(rooted m, rooted dm, const double *d, const double *dd, rooted g, rooted dg, double *b,
                          double *db, long n, int single, int dual) {
    g.root[0] = 1 / m.root[0];
    g.a[0] = 0;
    if (dual) {
        dg.root[0] = -dm.root[0] * g.root[0] * g.root[0];
        dg.a[0] = 0;
    }
    for (long k = 1; k < n; k++) {
        const double *row = m.a + k * n, *drow = dm.a + k * n;
        double scale = 1 / d[k], change = dual ? -dd[k] * scale * scale : 0;
        double root = m.root[k], droot = dual ? dm.root[k] : 0, broot = 0, dbroot = 0;
        memset(b, 0, k * sizeof(double));
        if (dual) memset(db, 0, k * sizeof(double));
        for (long i = 0; i < k; i++) {
            const double *from = g.a + i * n, *dfrom = dg.a + i * n;
            double into = m.a[i * n + k], sum = g.root[i] * root;
            broot += g.root[i] * into;
            if (dual) {
                double dinto = dm.a[i * n + k], dsum;
                sum += dot_and_add_dual(from, dfrom, row, drow, b, db, into, dinto, k, &dsum);
                dsum += dg.root[i] * root + g.root[i] * droot;
                dbroot += dg.root[i] * into + g.root[i] * dinto;
                dg.a[i * n + k] = dsum * scale + sum * change;
            } else
                sum += dot_and_add(from, row, b, into, k);
            g.a[i * n + k] = sum * scale;
        }
        double passing = (dot(b, row, k) + broot * root) * scale; /* P(some word goes through k) */
        double away = (1 - passing) * scale, daway = 0;
        if (dual) {
            double dpassing = dot(db, row, k) + dot(b, drow, k) + dbroot * root + broot * droot;
            dpassing = dpassing * scale + passing * d[k] * change;
            daway = -dpassing * scale + (1 - passing) * change;
        }
        for (long j = 0; j < k; j++) g.a[k * n + j] = b[j] * scale + away;
        g.a[k * n + k] = 0;
        g.root[k] = broot * scale + (single ? 0 : away);
        if (dual) {
            for (long j = 0; j < k; j++) dg.a[k * n + j] = db[j] * scale + b[j] * change + daway;
            dg.a[k * n + k] = 0;
            dg.root[k] = dbroot * scale + broot * change + (single ? 0 : daway);
        }
    }
}

static rooted rooted_new(double **space, long n) {
    rooted it;
    it.a = eisner_take(space, n * n);
    it.root = eisner_take(space, n);
    return it;
}

/* As eisner_run; returns 1 if potentials are too far apart for this way. */
static int tree_run(const double *arcs, const uint8_t *present, const double *direction, double *log_partition,
                    double *marginals, long n, long single, long first, long last) {
    long square = n * n, memory = 6 * square + 9 * n + 1;
    double *work = malloc(memory * sizeof(double));
    if (!work) return -1;
    int problem = 0, dual = direction != NULL;
    for (long row = first; row < last && !problem; row++) {
        double *space = work;
        double *own = eisner_take(&space, square), *change = eisner_take(&space, square);
        rooted m = rooted_new(&space, n), dm = rooted_new(&space, n);
        rooted g = rooted_new(&space, n), dg = rooted_new(&space, n);
        double *d = eisner_take(&space, n), *dd = eisner_take(&space, n);
        double *b = eisner_take(&space, n), *db = eisner_take(&space, n);
        long *places = (long *)eisner_take(&space, n + 1);
        const uint8_t *here = present ? present + row * n : NULL;
        long count = compress(arcs + row * square, here, own, places, n), size = count * count;
        memset(marginals + row * square, 0, square * sizeof(double));
        double sum = 0;
        for (long i = 0; i < count; i++) {
            double *line = own + i * count, top = maximum(line, count), low = minimum(line, count);
            if (top - low > TREE_RANGE) problem = 1;
            exponentials(line, line, top, count);
            sum += top;
        }
        if (problem) break;
        if (count) {
            memcpy(m.a, own, size * sizeof(double));
            for (long i = 0; i < count; i++) m.root[i] = own[i * count + i];
            if (dual) {
                compress(direction + row * square, here, change, places, n);
                for (long i = 0; i < size; i++) dm.a[i] = change[i] *= own[i];
                for (long i = 0; i < count; i++) dm.root[i] = change[i * count + i];
            }
            problem = tree_eliminate(m, dm, d, dd, count, single, dual);
            if (problem) break;
            for (long k = 0; k < count; k++) sum += log(d[k]);
            tree_gradient(m, dm, d, dd, g, dg, b, db, count, single, dual);
            for (long i = 0; i < count; i++) {
                g.a[i * count + i] = g.root[i];
                if (dual) dg.a[i * count + i] = dg.root[i];
            }
            for (long i = 0; i < size; i++)
                g.a[i] = dual ? change[i] * g.a[i] + own[i] * dg.a[i] : own[i] * g.a[i] > 0 ? own[i] * g.a[i] : 0;
            expand(g.a, marginals + row * square, places, count, n);
        }
        if (log_partition) log_partition[row] = sum;
    }
    free(work);
    return problem;
}

int NAME(non_projective_marginals)(const double *arcs, const uint8_t *present, double *log_partition,
                                   double *marginals, long n, long single, long first, long last) {
    return tree_run(arcs, present, NULL, log_partition, marginals, n, single, first, last);
}

int NAME(non_projective_derivative)(const double *arcs, const uint8_t *present, const double *direction,
                                    double *marginals, long n, long single, long first, long last) {
    return tree_run(arcs, present, direction, NULL, marginals, n, single, first, last);
}
