/* Non-projective trees: elimination of one word after another, its gradient, and the derivative of that.

   a[i][j] grows by a[i][k] a[k][j] / d[k], d[k] being all that leads away from k; roots stand on the diagonal. Nothing
   is ever subtracted, so that nothing cancels. With a single root, d[k] leaves out the way to the root: that is the
   part of the determinant that is linear in the roots. */

#define TREE_RANGE 300.0

/* a (n, n) becomes the eliminated matrix, da (or NULL) its change; d, dd (n). Returns 1 if nothing leads away. */
static int tree_eliminate(double *a, double *da, double *d, double *dd, long n, int single) {
    for (long k = n - 1; k >= 0; k--) {
        double *row = a + k * n, *drow = da + k * n;
        double sum = single && k ? 0 : row[k], dsum = 0;
        for (long j = 0; j < k; j++) sum += row[j];
        if (da) {
            dsum = single && k ? 0 : drow[k];
            for (long j = 0; j < k; j++) dsum += drow[j];
        }
        if (!(sum > 0)) return 1;
        d[k] = sum;
        dd[k] = dsum;
        for (long i = 0; i < k; i++) {
            double factor = a[i * n + k] / sum, own = a[i * n + i];
            double *to = a + i * n;
            if (da) {
                double dfactor = (da[i * n + k] - factor * dsum) / sum, down = da[i * n + i];
                double *dto = da + i * n;
                for (long j = 0; j < k; j++) dto[j] += dfactor * row[j] + factor * drow[j];
                dto[i] = down + dfactor * row[k] + factor * drow[k];
            }
            for (long j = 0; j < k; j++) to[j] += factor * row[j];
            to[i] = own + factor * row[k];
        }
    }
    return 0;
}

/* g (n, n): the derivative of the log-partition by the entries of the matrix; dg: what it changes by. */
static void tree_gradient(const double *a, const double *da, const double *d, const double *dd, double *g, double *dg,
                          double *b, double *db, long n, int single) {
    g[0] = 1 / a[0];
    if (da) dg[0] = -da[0] / (a[0] * a[0]);
    for (long k = 1; k < n; k++) {
        const double *row = a + k * n, *drow = da + k * n;
        double scale = 1 / d[k], change = da ? -dd[k] * scale * scale : 0;
        memset(b, 0, (k + 1) * sizeof(double));
        if (da) memset(db, 0, (k + 1) * sizeof(double));
        for (long i = 0; i < k; i++) {
            const double *from = g + i * n, *dfrom = dg + i * n;
            double to_root = from[i], dto_root = da ? dfrom[i] : 0, into = a[i * n + k];
            double sum = to_root * row[k], dsum = 0;
            for (long j = 0; j < i; j++) sum += from[j] * row[j];
            for (long j = i + 1; j < k; j++) sum += from[j] * row[j];
            double own = b[i];
            for (long j = 0; j < k; j++) b[j] += from[j] * into;
            b[i] = own;
            b[k] += to_root * into;
            if (da) {
                double dinto = da[i * n + k], down = db[i];
                dsum = dto_root * row[k] + to_root * drow[k];
                for (long j = 0; j < i; j++) dsum += dfrom[j] * row[j] + from[j] * drow[j];
                for (long j = i + 1; j < k; j++) dsum += dfrom[j] * row[j] + from[j] * drow[j];
                for (long j = 0; j < k; j++) db[j] += dfrom[j] * into + from[j] * dinto;
                db[i] = down;
                db[k] += dto_root * into + to_root * dinto;
                dg[i * n + k] = dsum * scale + sum * change;
            }
            g[i * n + k] = sum * scale;
        }
        double passing = 0, dpassing = 0; /* through k, from any word */
        for (long j = 0; j <= k; j++) passing += b[j] * row[j];
        passing *= scale;
        double away = (1 - passing) * scale, daway = 0;
        if (da) {
            for (long j = 0; j <= k; j++) dpassing += db[j] * row[j] + b[j] * drow[j];
            dpassing = dpassing * scale + passing * d[k] * change;
            daway = -dpassing * scale + (1 - passing) * change;
        }
        for (long j = 0; j <= k; j++) {
            int counted = j < k || !single;
            g[k * n + j] = b[j] * scale + (counted ? away : 0);
            if (da) dg[k * n + j] = db[j] * scale + b[j] * change + (counted ? daway : 0);
        }
    }
}

/* As eisner_run; returns 1 if potentials are too far apart for this way. */
static int tree_run(const double *arcs, const uint8_t *present, const double *direction, double *log_partition,
                    double *marginals, long n, long single, long first, long last) {
    long square = n * n, memory = 6 * square + 5 * n + 1;
    double *work = malloc(memory * sizeof(double));
    if (!work) return -1;
    int problem = 0;
    for (long row = first; row < last && !problem; row++) {
        double *space = work;
        double *own = eisner_take(&space, square), *a = eisner_take(&space, square);
        double *down = eisner_take(&space, square), *da = eisner_take(&space, square);
        double *g = eisner_take(&space, square), *dg = eisner_take(&space, square);
        double *d = eisner_take(&space, n), *dd = eisner_take(&space, n);
        double *b = eisner_take(&space, n), *db = eisner_take(&space, n);
        long *places = (long *)eisner_take(&space, n + 1);
        const uint8_t *here = present ? present + row * n : NULL;
        long count = compress(arcs + row * square, here, own, places, n), size = count * count;
        memset(marginals + row * square, 0, square * sizeof(double));
        double sum = 0;
        if (count) {
            for (long i = 0; i < count; i++) {
                double *line = own + i * count, top = maximum(line, count), low = minimum(line, count);
                if (top - low > TREE_RANGE) problem = 1;
                exponentials(line, line, top, count);
                sum += top;
            }
            if (problem) break;
            memcpy(a, own, size * sizeof(double));
            if (direction) {
                compress(direction + row * square, here, down, places, n);
                for (long i = 0; i < size; i++) da[i] = down[i] *= own[i];
            }
            problem = tree_eliminate(a, direction ? da : NULL, d, dd, count, single);
            if (problem) break;
            for (long k = 0; k < count; k++) sum += log(d[k]);
            tree_gradient(a, direction ? da : NULL, d, dd, g, dg, b, db, count, single);
            for (long i = 0; i < size; i++)
                g[i] = direction ? down[i] * g[i] + own[i] * dg[i] : own[i] * g[i] > 0 ? own[i] * g[i] : 0;
            expand(g, marginals + row * square, places, count, n);
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
