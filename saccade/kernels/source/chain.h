/* Chains of states: forward-backward with probabilities scaled at every position, and its derivative.

   A state whose probability underflows could only matter later if the states' futures differed by more than the range
   of double: that is excluded by rejecting transitions further apart than CHAIN_RANGE (the caller then uses the plain
   path). Scores of states may be arbitrarily far apart. */

#define CHAIN_RANGE 300.0

typedef struct {
    long length, states, floats, *places;
    double *emission, *forward, *scale, *own, *move, *moved; /* move: exp of transitions; moved: its transpose */
} chain;

static long chain_places(const uint8_t *mask, long length, long *places) {
    long count = 0;
    for (long i = 0; i < length; i++)
        if (!mask || mask[i]) places[count++] = i;
    return count;
}

static void chain_transpose(const double *from, double *to, long states) {
    for (long y = 0; y < states; y++)
        for (long c = 0; c < states; c++) to[c * states + y] = from[y * states + c];
}

/* exp of the transitions into the position `place`, unless they are shared and already computed. */
static double chain_move(chain *it, const void *transitions, long start, long stride, long place, int first) {
    long square = it->states * it->states;
    if (stride || first) {
        read_table(it->own, transitions, start + (stride ? (place - 1) * stride : 0), square, it->floats);
        double top = maximum(it->own, square);
        exponentials(it->move, it->own, top, square);
        chain_transpose(it->move, it->moved, it->states);
        it->scale[it->length] = top;
    }
    return it->scale[it->length];
}

/* Turned: move times its direction. */
static void chain_turn(chain *it, const void *turn, long start, long stride, long place, double *turned) {
    long square = it->states * it->states;
    read_table(turned, turn, start + (stride ? (place - 1) * square : 0), square, it->floats);
    for (long k = 0; k < square; k++) turned[k] *= it->move[k];
}

/* Whether transitions are further apart than CHAIN_RANGE. */
static int chain_steep(chain *it, const void *transitions, long start, long positions) {
    long square = it->states * it->states;
    double high = FORBIDDEN, low = -FORBIDDEN;
    for (long i = 0; i < positions; i++) {
        read_table(it->own, transitions, start + i * square, square, it->floats);
        double top = maximum(it->own, square), bottom = minimum(it->own, square);
        high = top > high ? top : high;
        low = bottom < low ? bottom : low;
    }
    return high - low > CHAIN_RANGE;
}

/* to += factor * from */
INLINE void add_scaled(double *to, const double *from, double factor, long size) {
    for (long i = 0; i < size; i++) to[i] += factor * from[i];
}

/* to[c] = the sum over y of weights[y] table[y][c], and its change where there is `dto`; `dtable` may be NULL. */
INLINE void combine(double *restrict to, double *restrict dto, const double *table, const double *dtable,
                    const double *weights, const double *dweights, long states) {
    for (long c = 0; c < states; c++) to[c] = weights[0] * table[c];
    for (long y = 1; y < states; y++) add_scaled(to, table + y * states, weights[y], states);
    if (!dto) return;
    for (long c = 0; c < states; c++) dto[c] = dweights[0] * table[c];
    for (long y = 1; y < states; y++) add_scaled(dto, table + y * states, dweights[y], states);
    if (dtable)
        for (long y = 0; y < states; y++) add_scaled(dto, dtable + y * states, weights[y], states);
}

/* Rows first..last-1 of unary (rows, length, states), transitions (rows or 1, length - 1 or 1, states, states; strides
   of 0 for 1) and mask (rows, length). Writes the log-partition (rows), the marginals of states, and those of
   transitions (rows, length - 1 or 1, states, states), summed over positions if they are shared. With directions for
   unary and transitions (not NULL; `turn` may be NULL if transitions do not change), the derivatives of the marginals
   along them are written instead.
   Returns 0; 1 if transitions are too far apart; -1 if out of memory. */
INLINE int chain_rows(const void *unary, const void *transitions, const uint8_t *mask, const void *direction,
                      const void *turn, double *log_partition, void *marginals, void *edges, long floats, long length,
                      long states, long row_stride, long stride, long first, long last) {
    long square = states * states, positions = !stride ? 1 : length ? length - 1 : 0, tables = length * states;
    long memory = 5 * PADDED(tables, LINE) + 3 * PADDED(length + 1, LINE) + 7 * PADDED(square, LINE);
    double *work = workspace(memory + 4 * PADDED(states, LINE));
    if (!work) return -1;
    double *space = work;
    chain it = {.length = length, .states = states, .floats = floats, .places = (long *)take(&space, length + 1)};
    double *u = take(&space, tables), *du = take(&space, tables), *out = u; /* u is no longer needed by then */
    it.emission = take(&space, tables);
    it.forward = take(&space, tables);
    double *dforward = take(&space, tables);
    it.scale = take(&space, length + 1);
    double *dscale = take(&space, length + 1);
    it.own = take(&space, square);
    it.move = take(&space, square);
    it.moved = take(&space, square);
    double *turned = take(&space, square), *turned_back = take(&space, square); /* see chain_turn; the transpose */
    double *pairs = take(&space, square), *dpairs = take(&space, square);
    double *beta = take(&space, states), *dbeta = take(&space, states);
    double *ahead = take(&space, states), *dahead = take(&space, states);
    int problem = 0, dual = direction != NULL;
    for (long row = first; row < last && !problem; row++) {
        long t = row * row_stride, dt = row * positions * square;
        clear_table(marginals, row * tables, tables, floats);
        clear_table(edges, dt, positions * square, floats);
        long count = chain_places(mask ? mask + row * length : NULL, length, it.places);
        if (length > 1 && (row == first || row_stride) && chain_steep(&it, transitions, t, positions)) {
            problem = 1;
            break;
        }
        read_table(u, unary, row * tables, tables, floats);
        if (dual) read_table(du, direction, row * tables, tables, floats);
        double log_total = 0, product = 1; /* of the sums whose logarithm has not been taken yet */
        int none = 0;
        for (long i = 0; i < count; i++) {
            const double *here = u + it.places[i] * states;
            double top = maximum(here, states);
            none |= top < FORBIDDEN / 10;
            log_total += top;
            for (long c = 0; c < states; c++) it.emission[i * states + c] = here[c] - top;
        }
        exponentials(it.emission, it.emission, 0, count * states);
        for (long i = 0; i < count; i++) {
            long place = it.places[i];
            double *here = it.forward + i * states, *dhere = dforward + i * states, *e = it.emission + i * states;
            if (i == 0) {
                for (long c = 0; c < states; c++) {
                    here[c] = 1;
                    dhere[c] = 0;
                }
            } else {
                log_total += chain_move(&it, transitions, t, stride, place, i == 1);
                if (turn && (stride || i == 1)) chain_turn(&it, turn, dt, stride, place, turned);
                combine(here, dual ? dhere : NULL, it.move, turn ? turned : NULL, here - states, dhere - states,
                        states);
            }
            double sum = 0, dsum = 0;
            for (long c = 0; c < states; c++) {
                if (dual) {
                    dhere[c] = e[c] * (dhere[c] + here[c] * du[place * states + c]);
                    dsum += dhere[c];
                }
                here[c] *= e[c];
                sum += here[c];
            }
            double scale = it.scale[i] = 1 / sum;
            dscale[i] = dsum * scale;
            if (sum < 1e-100 || product < 1e-100 || product > 1e100) {
                log_total += log(product);
                product = 1;
            }
            product *= sum;
            for (long c = 0; c < states; c++) {
                here[c] *= scale;
                if (dual) dhere[c] = dhere[c] * scale - here[c] * dscale[i];
            }
        }
        log_total += log(product);
        none |= log_total < FORBIDDEN / 10;
        if (log_partition) log_partition[row] = none ? FORBIDDEN : log_total;
        if (none) continue;
        if (count < length) memset(out, 0, tables * sizeof(double));
        memset(pairs, 0, square * sizeof(double));
        memset(dpairs, 0, square * sizeof(double));
        for (long c = 0; c < states; c++) {
            beta[c] = 1;
            dbeta[c] = 0;
        }
        for (long i = count - 1; i >= 0; i--) {
            long place = it.places[i];
            const double *here = it.forward + i * states, *dhere = dforward + i * states;
            double *to = out + place * states;
            for (long c = 0; c < states; c++)
                to[c] = dual ? dhere[c] * beta[c] + here[c] * dbeta[c] : here[c] * beta[c];
            if (i == 0) break;
            const double *e = it.emission + i * states;
            const double *before = it.forward + (i - 1) * states, *dbefore = dforward + (i - 1) * states;
            double scale = it.scale[i], change = dscale[i];
            for (long c = 0; c < states; c++) {
                ahead[c] = e[c] * beta[c] * scale;
                if (dual) dahead[c] = e[c] * scale * (dbeta[c] + beta[c] * (du[place * states + c] - change));
            }
            chain_move(&it, transitions, t, stride, place, 0);
            if (turn && stride) chain_turn(&it, turn, dt, stride, place, turned);
            if (turn && (stride || i == count - 1)) chain_transpose(turned, turned_back, states);
            for (long y = 0; y < states; y++) {
                double from = before[y], dfrom = dbefore[y];
                double *to_pairs = pairs + y * states, *to_dpairs = dpairs + y * states;
                add_scaled(to_pairs, ahead, from, states);
                if (dual)
                    for (long c = 0; c < states; c++) to_dpairs[c] += dfrom * ahead[c] + from * dahead[c];
            }
            combine(beta, dual ? dbeta : NULL, it.moved, turn ? turned_back : NULL, ahead, dahead, states);
            if (stride || i == 1) {
                for (long k = 0; k < square; k++)
                    it.own[k] = it.move[k] * (dual ? dpairs[k] : pairs[k]) + (turn ? turned[k] * pairs[k] : 0);
                write_table(edges, dt + (stride ? (place - 1) * square : 0), it.own, square, floats);
                memset(pairs, 0, square * sizeof(double));
                memset(dpairs, 0, square * sizeof(double));
            }
        }
        write_table(marginals, row * tables, out, tables, floats);
    }
    free(work);
    return problem;
}

/* Two states are the most common case, with loops so short that the compiler should know their length. */
static int chain_run(const void *unary, const void *transitions, const uint8_t *mask, const void *direction,
                     const void *turn, double *log_partition, void *marginals, void *edges, long floats, long length,
                     long states, long row_stride, long stride, long first, long last) {
#define CHAIN_ROWS(states)                                                                                          \
    chain_rows(unary, transitions, mask, direction, turn, log_partition, marginals, edges, floats, length, states, \
               row_stride, stride, first, last)
    return states == 2 ? CHAIN_ROWS(2) : CHAIN_ROWS(states);
#undef CHAIN_ROWS
}

int NAME(chain_marginals)(const void *unary, const void *transitions, const uint8_t *mask, double *log_partition,
                          void *marginals, void *edges, long floats, long length, long states, long row_stride,
                          long stride, long first, long last) {
    return chain_run(unary, transitions, mask, NULL, NULL, log_partition, marginals, edges, floats, length, states,
                     row_stride, stride, first, last);
}

int NAME(chain_derivative)(const void *unary, const void *transitions, const uint8_t *mask, const void *direction,
                           const void *turn, void *marginals, void *edges, long floats, long length, long states,
                           long row_stride, long stride, long first, long last) {
    return chain_run(unary, transitions, mask, direction, turn, NULL, marginals, edges, floats, length, states,
                     row_stride, stride, first, last);
}
