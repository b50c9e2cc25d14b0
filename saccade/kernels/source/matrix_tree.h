/* Non-projective trees: elimination of one word after another, its gradient, and the derivative of that.

   a[i][j] grows by a[i][k] a[k][j] / d[k], where d[k] is the total weight leaving k; roots are on the diagonal. Nothing
   is ever subtracted, so nothing cancels. With a single root, d[k] excludes the arc to the root: that gives the part
   of the determinant that is linear in the roots. */

#define TREE_RANGE 300.0

INLINE double dot(const double *x, const double *y, long size) {
    vec sums = splat(0);
    long i = 0;
    for (; i + LANES <= size; i += LANES) sums += load(x + i) * load(y + i);
    double sum = total(sums);
    for (; i < size; i++) sum += x[i] * y[i];
    return sum;
}

/* A matrix (n, n) whose diagonal, the roots, is stored separately. */
typedef struct {
    double *a, *root;
} rooted;

/* One word: a[i][j] grows by a[i][k] a[k][j] / d[k]. Returns 1 if nothing leaves it. */
static int tree_eliminate_one(rooted m, double *d, long k, long n, int single) {
    const double *row = m.a + k * n;
    double sum = !single || k == 0 ? m.root[k] : 0;
    for (long j = 0; j < k; j++) sum += row[j];
    if (!(sum > 0)) return 1;
    d[k] = sum;
    for (long i = 0; i < k; i++) {
        double factor = m.a[i * n + k] / sum, *to = m.a + i * n; /* the diagonal is never read */
        for (long j = 0; j < k; j++) to[j] += factor * row[j];
        m.root[i] += factor * m.root[k];
    }
    return 0;
}

/* m becomes the eliminated matrix; d (n). Two words at a time, so that the rest is read and written half as often. */
static int tree_eliminate(rooted m, double *d, long n, int single) {
    long k = n - 1;
    for (; k >= 2; k -= 2) {
        double *later = m.a + k * n, *row = m.a + (k - 1) * n;
        long size = k - 1; /* the words that are left */
        double sum = single ? 0 : m.root[k];
        for (long j = 0; j < k; j++) sum += later[j];
        if (!(sum > 0)) return 1;
        d[k] = sum;
        double scale = 1 / sum, factor = row[k] * scale, across = later[k - 1] * scale;
        for (long j = 0; j < size; j++) row[j] += factor * later[j];
        m.root[k - 1] += factor * m.root[k];
        sum = single ? 0 : m.root[k - 1];
        for (long j = 0; j < size; j++) sum += row[j];
        if (!(sum > 0)) return 1;
        d[k - 1] = sum;
        double other_scale = 1 / sum;
        for (long i = 0; i < size; i++) {
            double *to = m.a + i * n;
            to[k - 1] += to[k] * across;
            double first = to[k] * scale, second = to[k - 1] * other_scale;
            long j = 0;
            for (; j + LANES <= size; j += LANES)
                store(to + j, load(to + j) + first * load(later + j) + second * load(row + j));
            for (; j < size; j++) to[j] += first * later[j] + second * row[j];
            m.root[i] += first * m.root[k] + second * m.root[k - 1];
        }
    }
    for (; k >= 0; k--)
        if (tree_eliminate_one(m, d, k, n, single)) return 1;
    return 0;
}

/* The same, one word at a time, with derivatives. */
static int tree_eliminate_dual(rooted m, rooted dm, double *d, double *dd, long n, int single) {
    for (long k = n - 1; k >= 0; k--) {
        const double *row = m.a + k * n, *drow = dm.a + k * n;
        int counted = !single || k == 0;
        double sum = counted ? m.root[k] : 0, dsum = counted ? dm.root[k] : 0;
        for (long j = 0; j < k; j++) sum += row[j];
        for (long j = 0; j < k; j++) dsum += drow[j];
        if (!(sum > 0)) return 1;
        d[k] = sum;
        dd[k] = dsum;
        for (long i = 0; i < k; i++) {
            double factor = m.a[i * n + k] / sum, dfactor = (dm.a[i * n + k] - factor * dsum) / sum;
            double *to = m.a + i * n, *dto = dm.a + i * n;
            long j = 0;
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
            m.root[i] += factor * m.root[k];
        }
    }
    return 0;
}

/* One pass over `rows` rows of `from`, n apart, for two things: their dot products with `row`, which become `sums`, and
   b += into * from. */
INLINE void dot_and_add(const double *from, const double *row, double *b, const double *into, double *sums, long n,
                        long size, int rows) {
    vec parts[4] = {splat(0), splat(0), splat(0), splat(0)};
    long j = 0;
    for (; j + LANES <= size; j += LANES) {
        vec r = load(row + j), sum = load(b + j);
        for (int i = 0; i < rows; i++) {
            vec x = load(from + i * n + j);
            parts[i] += x * r;
            sum += into[i] * x;
        }
        store(b + j, sum);
    }
    for (int i = 0; i < rows; i++) sums[i] = total(parts[i]);
    for (; j < size; j++)
        for (int i = 0; i < rows; i++) {
            sums[i] += from[i * n + j] * row[j];
            b[j] += into[i] * from[i * n + j];
        }
}

/* The same for one row, with derivatives; returns the dot product. */
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

/* g: the derivative of the log-partition by the entries of the matrix, zero on the diagonal. b (n) is
   workspace. */
static void tree_gradient(rooted m, const double *d, rooted g, double *b, long n, int single) {
    g.root[0] = 1 / m.root[0];
    g.a[0] = 0;
    for (long k = 1; k < n; k++) {
        const double *row = m.a + k * n;
        double scale = 1 / d[k], root = m.root[k], broot = 0;
        memset(b, 0, k * sizeof(double));
        for (long i = 0; i < k; i += 4) {
            int rows = k - i < 4 ? k - i : 4;
            double into[4], sums[4];
            for (int r = 0; r < rows; r++) into[r] = m.a[(i + r) * n + k];
            if (rows == 4)
                dot_and_add(g.a + i * n, row, b, into, sums, n, k, 4);
            else
                dot_and_add(g.a + i * n, row, b, into, sums, n, k, rows);
            for (int r = 0; r < rows; r++) {
                broot += g.root[i + r] * into[r];
                g.a[(i + r) * n + k] = (sums[r] + g.root[i + r] * root) * scale;
            }
        }
        double passing = (dot(b, row, k) + broot * root) * scale; /* P(some path passes through k) */
        double away = (1 - passing) * scale;
        for (long j = 0; j < k; j++) g.a[k * n + j] = b[j] * scale + away;
        g.a[k * n + k] = 0;
        g.root[k] = broot * scale + (single ? 0 : away);
    }
}

/* The same, with its derivative dg. */
static void tree_gradient_dual(rooted m, rooted dm, const double *d, const double *dd, rooted g, rooted dg, double *b,
                               double *db, long n, int single) {
    g.root[0] = 1 / m.root[0];
    dg.root[0] = -dm.root[0] * g.root[0] * g.root[0];
    g.a[0] = dg.a[0] = 0;
    for (long k = 1; k < n; k++) {
        const double *row = m.a + k * n, *drow = dm.a + k * n;
        double scale = 1 / d[k], change = -dd[k] * scale * scale;
        double root = m.root[k], droot = dm.root[k], broot = 0, dbroot = 0;
        memset(b, 0, k * sizeof(double));
        memset(db, 0, k * sizeof(double));
        for (long i = 0; i < k; i++) {
            double into = m.a[i * n + k], dinto = dm.a[i * n + k], dsum;
            double sum = dot_and_add_dual(g.a + i * n, dg.a + i * n, row, drow, b, db, into, dinto, k, &dsum);
            sum += g.root[i] * root;
            dsum += dg.root[i] * root + g.root[i] * droot;
            broot += g.root[i] * into;
            dbroot += dg.root[i] * into + g.root[i] * dinto;
            g.a[i * n + k] = sum * scale;
            dg.a[i * n + k] = dsum * scale + sum * change;
        }
        double passing = (dot(b, row, k) + broot * root) * scale;
        double dpassing = dot(db, row, k) + dot(b, drow, k) + dbroot * root + broot * droot;
        dpassing = dpassing * scale + passing * d[k] * change;
        double away = (1 - passing) * scale, daway = -dpassing * scale + (1 - passing) * change;
        for (long j = 0; j < k; j++) {
            g.a[k * n + j] = b[j] * scale + away;
            dg.a[k * n + j] = db[j] * scale + b[j] * change + daway;
        }
        g.a[k * n + k] = dg.a[k * n + k] = 0;
        g.root[k] = broot * scale + (single ? 0 : away);
        dg.root[k] = dbroot * scale + broot * change + (single ? 0 : daway);
    }
}

static rooted rooted_new(double **space, long n) {
    rooted it;
    it.a = take(space, n * n);
    it.root = take(space, n);
    return it;
}

/* c = a b for matrices whose rows are `stride` apart, a multiple of 3 * LANES; n rows, a multiple of 4, and `inner`
   columns of a and rows of b. A block of 4 by 3 vectors stays in registers. */
static void multiply(const double *a, const double *b, double *c, long n, long inner, long stride) {
    for (long i = 0; i < n; i += 4)
        for (long j = 0; j < stride; j += 3 * LANES) {
            vec sums[4][3];
            for (int r = 0; r < 4; r++) sums[r][0] = sums[r][1] = sums[r][2] = splat(0);
            for (long k = 0; k < inner; k++) {
                const double *row = b + k * stride + j;
                vec one = load(row), two = load(row + LANES), three = load(row + 2 * LANES);
                IN_REGISTER(one);
                IN_REGISTER(two);
                IN_REGISTER(three);
                for (int r = 0; r < 4; r++) {
                    double x = a[(i + r) * stride + k];
                    sums[r][0] += x * one;
                    sums[r][1] += x * two;
                    sums[r][2] += x * three;
                }
            }
            for (int r = 0; r < 4; r++)
                for (int part = 0; part < 3; part++) store(c + (i + r) * stride + j + part * LANES, sums[r][part]);
        }
}

#define TREE_STEEP 300.0
#define TREE_STEEP_FLOAT 100.0 /* beyond it, rounded marginals cause errors above 1e-6 */

/* The derivative of the marginals when weights (n, n), 1 at most, change by a share of `direction`, directly from the
   marginals: with G = marginals / weights, the derivative of the log-partition by the weights,

       dG[i][j] = sum over k, l of dweights[k][l] (G[k][j] - G[k][i]) (G[i][k] - G[i][l]),

   two products of matrices. If G is so `steep` that these differences would lose precision, or if a weight is 0, it
   returns 1 and the derivative must be computed the long way. `direction` becomes the result. */
static int tree_direct(const double *weights, const double *marginals, double *direction, long n, long single,
                       double steep, double *space) {
    long stride = PADDED(n, 3 * LANES), rows = PADDED(n, 4), size = rows * stride;
    double *g = take(&space, size), *transposed = take(&space, size);
    double *v = take(&space, size), *root = take(&space, n), *droot = take(&space, n);
    double *sums = take(&space, n);
    memset(g, 0, size * sizeof(double));
    memset(transposed, 0, size * sizeof(double));
    double lowest = 1, steepest = 0;
    for (long i = 0; i < n; i++) {
        const double *weight = weights + i * n, *marginal = marginals + i * n;
        double *slope = g + i * stride, *change = v + i * stride, *along = direction + i * n;
        for (long j = 0; j < n; j++) slope[j] = marginal[j] / weight[j];
        for (long j = 0; j < n; j++) change[j] = weight[j] * along[j];
        for (long j = 0; j < n; j++) along[j] = slope[j] * change[j]; /* the part that involves no other arc */
        double low = minimum(weight, n), high = maximum(slope, n), sum = 0;
        lowest = low < lowest ? low : lowest;
        steepest = high > steepest ? high : steepest;
        for (long j = 0; j < n; j++) {
            transposed[j * stride + i] = change[j];
            sum += change[j];
        }
        root[i] = slope[i];
        droot[i] = change[i];
        sums[i] = single ? sum - change[i] : sum;
        slope[i] = transposed[i * stride + i] = 0;
    }
    if (!(lowest > 0) || !(steepest < steep)) return 1;
    /* v[i][k] = sum over l of dweights[k][l] (G[i][l] - G[i][k]), l a word or the root. */
    multiply(g, transposed, v, rows, n, stride);
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++) v[i * stride + k] += root[i] * droot[k] - g[i * stride + k] * sums[k];
    /* dG[i][j] = sum over k of (G[k][i] - G[k][j]) v[i][k]; `transposed` is free again. */
    double *product = transposed;
    multiply(v, g, product, rows, n, stride);
    for (long i = 0; i < n; i++) {
        const double *of = product + i * stride, *weight = weights + i * n;
        double own = of[i], *result = direction + i * n, at_root = result[i];
        for (long j = 0; j < n; j++) result[j] += weight[j] * (own - of[j]);
        result[i] = at_root + weight[i] * ((single ? 0 : own) - dot(root, v + i * stride, n));
    }
    return 0;
}

#define TREE_DIRECT_SPACE(n) (3 * PADDED(PADDED(n, 4) * PADDED(n, 3 * LANES), LINE) + 3 * PADDED(n, LINE))

/* As eisner_run; `known` are the marginals if there is a direction. Returns 1 if potentials are too far apart, or a word
   has no possible head. */
static int tree_run(const void *arcs, const uint8_t *present, const void *known, const void *direction,
                    double *log_partition, void *marginals, long floats, long n, long single, long first, long last) {
    long square = n * n;
    double *work = workspace(7 * PADDED(square, LINE) + 9 * PADDED(n + 1, LINE) + TREE_DIRECT_SPACE(n));
    if (!work) return -1;
    int problem = 0, dual = direction != NULL;
    for (long row = first; row < last && !problem; row++) {
        double *space = work;
        double *own = take(&space, square), *change = take(&space, square);
        double *slopes = take(&space, square);
        rooted m = rooted_new(&space, n), dm = rooted_new(&space, n);
        rooted g = rooted_new(&space, n), dg = rooted_new(&space, n);
        double *d = take(&space, n), *dd = take(&space, n);
        double *b = take(&space, n), *db = take(&space, n);
        long *places = (long *)take(&space, n + 1);
        const uint8_t *here = present ? present + row * n : NULL;
        long start = row * square, count = compress(arcs, start, here, own, places, n, floats), size = count * count;
        clear_table(marginals, start, square, floats);
        double sum = 0;
        for (long i = 0; i < count; i++) {
            double *line = own + i * count, top = maximum(line, count), low = minimum(line, count);
            if (top - low > TREE_RANGE || top < FORBIDDEN / 10) problem = 1;
            exponentials(line, line, top, count);
            sum += top;
        }
        if (problem) break;
        if (dual && count) {
            compress(known, start, here, slopes, places, n, floats);
            compress(direction, start, here, change, places, n, floats);
            if (!tree_direct(own, slopes, change, count, single, floats ? TREE_STEEP_FLOAT : TREE_STEEP, space)) {
                expand(change, marginals, start, places, count, n, floats);
                continue;
            }
            compress(direction, start, here, change, places, n, floats);
            memcpy(m.a, own, size * sizeof(double));
            for (long i = 0; i < count; i++) m.root[i] = own[i * count + i];
            for (long i = 0; i < size; i++) dm.a[i] = change[i] *= own[i];
            for (long i = 0; i < count; i++) dm.root[i] = change[i * count + i];
            problem = tree_eliminate_dual(m, dm, d, dd, count, single);
            if (problem) break;
            tree_gradient_dual(m, dm, d, dd, g, dg, b, db, count, single);
            for (long i = 0; i < count; i++) {
                g.a[i * count + i] = g.root[i];
                dg.a[i * count + i] = dg.root[i];
            }
            for (long i = 0; i < size; i++) g.a[i] = change[i] * g.a[i] + own[i] * dg.a[i];
            expand(g.a, marginals, start, places, count, n, floats);
        } else if (count) {
            memcpy(m.a, own, size * sizeof(double));
            for (long i = 0; i < count; i++) m.root[i] = own[i * count + i];
            problem = tree_eliminate(m, d, count, single);
            if (problem) break;
            for (long k = 0; k < count; k++) sum += log(d[k]);
            tree_gradient(m, d, g, b, count, single);
            for (long i = 0; i < count; i++) g.a[i * count + i] = g.root[i];
            for (long i = 0; i < size; i++) g.a[i] = own[i] * g.a[i] > 0 ? own[i] * g.a[i] : 0;
            expand(g.a, marginals, start, places, count, n, floats);
        }
        if (log_partition) log_partition[row] = sum;
    }
    free(work);
    return problem;
}

int NAME(non_projective_marginals)(const void *arcs, const uint8_t *present, double *log_partition, void *marginals,
                                   long floats, long n, long single, long first, long last) {
    return tree_run(arcs, present, NULL, NULL, log_partition, marginals, floats, n, single, first, last);
}

int NAME(non_projective_derivative)(const void *arcs, const uint8_t *present, const void *known,
                                    const void *direction, void *marginals, long floats, long n, long single,
                                    long first, long last) {
    return tree_run(arcs, present, known, direction, NULL, marginals, floats, n, single, first, last);
}
