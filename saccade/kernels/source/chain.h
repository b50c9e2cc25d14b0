/* Chains of states: forward-backward with probabilities scaled at every position, and its derivative.

   A state whose probability underflows could only matter later if the states' futures differed by more than the range
   of double: that is excluded by refusing transitions further apart than CHAIN_RANGE (the caller then takes the plain
   path). Scores of states may be as far apart as they like. */

#define CHAIN_RANGE 300.0

typedef struct {
    long length, states, *places;
    double *emission, *forward, *scale, *move, *moved; /* move: exp of transitions; moved: its transpose */
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

/* exp of the transitions into the position `place`, unless they are shared and there already. */
static double chain_move(chain *it, const double *transitions, long stride, long place, int first) {
    long square = it->states * it->states;
    const double *own = transitions + (stride ? (place - 1) * stride : 0);
    double top = 0;
    if (stride || first) {
        top = maximum(own, square);
        exponentials(it->move, own, top, square);
        chain_transpose(it->move, it->moved, it->states);
        it->scale[it->length] = top;
    }
    return it->scale[it->length];
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
   unary and transitions (not NULL; `turn` may be, for transitions that stay), the marginals' derivatives along them
   take their place.
   Returns 0; 1 if transitions are too far apart; -1 if there is no memory. */
static int chain_run(const double *unary, const double *transitions, const uint8_t *mask, const double *direction,
                     const double *turn, double *log_partition, double *marginals, double *edges, long length,
                     long states, long row_stride, long stride, long first, long last) {
    long square = states * states, positions = !stride ? 1 : length ? length - 1 : 0;
    long memory = 4 * length * states + 4 * length + 2 + 7 * square + 10 * states;
    double *work = malloc(memory * sizeof(double) + (length + 1) * sizeof(long));
    if (!work) return -1;
    chain it = {.length = length, .states = states, .places = (long *)(work + memory)};
    double *free_space = work;
#define TAKE(size) (free_space += (size), free_space - (size))
    it.emission = TAKE(length * states);
    it.forward = TAKE(length * states);
    double *dforward = TAKE(length * states);
    it.scale = TAKE(length + 1);
    double *dscale = TAKE(length + 1);
    it.move = TAKE(square);
    it.moved = TAKE(square);
    double *turned = TAKE(square), *turned_back = TAKE(square); /* move times its direction, and the transpose */
    double *pairs = TAKE(square), *dpairs = TAKE(square);
    double *beta = TAKE(states), *dbeta = TAKE(states), *ahead = TAKE(states), *dahead = TAKE(states);
#undef TAKE
    int problem = 0, dual = direction != NULL;
    for (long row = first; row < last && !problem; row++) {
        const double *u = unary + row * length * states, *t = transitions + row * row_stride;
        const double *du = dual ? direction + row * length * states : NULL;
        const double *dt = turn ? turn + row * positions * square : NULL;
        double *out = marginals + row * length * states, *out_edges = edges + row * positions * square;
        memset(out, 0, length * states * sizeof(double));
        memset(out_edges, 0, positions * square * sizeof(double));
        long count = chain_places(mask ? mask + row * length : NULL, length, it.places);
        if (positions > 0 && length > 1 && maximum(t, positions * square) - minimum(t, positions * square) > CHAIN_RANGE) {
            problem = 1;
            break;
        }
        double log_total = 0;
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
                log_total += chain_move(&it, t, stride, place, i == 1);
                if (dt && (stride || i == 1)) {
                    const double *turns = dt + (stride ? (place - 1) * square : 0);
                    for (long k = 0; k < square; k++) turned[k] = it.move[k] * turns[k];
                }
                combine(here, dual ? dhere : NULL, it.move, dt ? turned : NULL, here - states, dhere - states, states);
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
            it.scale[i] = sum;
            dscale[i] = dsum / sum;
            log_total += log(sum);
            for (long c = 0; c < states; c++) {
                here[c] /= sum;
                if (dual) dhere[c] = dhere[c] / sum - here[c] * dscale[i];
            }
        }
        if (log_partition) log_partition[row] = none ? FORBIDDEN : log_total;
        if (none) continue;
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
            double scale = 1 / it.scale[i], change = dscale[i];
            for (long c = 0; c < states; c++) {
                ahead[c] = e[c] * beta[c] * scale;
                if (dual) dahead[c] = e[c] * scale * (dbeta[c] + beta[c] * (du[place * states + c] - change));
            }
            chain_move(&it, t, stride, place, 0);
            if (dt && stride)
                for (long k = 0; k < square; k++) turned[k] = it.move[k] * dt[(place - 1) * square + k];
            if (dt && (stride || i == count - 1)) chain_transpose(turned, turned_back, states);
            for (long y = 0; y < states; y++) {
                double from = before[y], dfrom = dbefore[y];
                double *to_pairs = pairs + y * states, *to_dpairs = dpairs + y * states;
                add_scaled(to_pairs, ahead, from, states);
                if (dual)
                    for (long c = 0; c < states; c++) to_dpairs[c] += dfrom * ahead[c] + from * dahead[c];
            }
            combine(beta, dual ? dbeta : NULL, it.moved, dt ? turned_back : NULL, ahead, dahead, states);
            if (stride || i == 1) {
                double *pair = out_edges + (stride ? (place - 1) * square : 0);
                for (long k = 0; k < square; k++)
                    pair[k] = it.move[k] * (dual ? dpairs[k] : pairs[k]) + (dt ? turned[k] * pairs[k] : 0);
                memset(pairs, 0, square * sizeof(double));
                memset(dpairs, 0, square * sizeof(double));
            }
        }
    }
    free(work);
    return problem;
}

int NAME(chain_marginals)(const double *unary, const double *transitions, const uint8_t *mask, double *log_partition,
                          double *marginals, double *edges, long length, long states, long row_stride, long stride,
                          long first, long last) {
    return chain_run(unary, transitions, mask, NULL, NULL, log_partition, marginals, edges, length, states, row_stride,
                     stride, first, last);
}

int NAME(chain_derivative)(const double *unary, const double *transitions, const uint8_t *mask,
                           const double *direction, const double *turn, double *marginals, double *edges, long length,
                           long states, long row_stride, long stride, long first, long last) {
    return chain_run(unary, transitions, mask, direction, turn, NULL, marginals, edges, length, states, row_stride,
                     stride, first, last);
}
