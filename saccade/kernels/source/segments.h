/* Softmax, sparsemax and entmax-1.5 over segments of the first axis, for several heads, and their gradients.

   Scores are (edges, heads); segment i is edges starts[i] to starts[i + 1] - 1: the neighbours of a node. */

#undef SOFTMAX
#define SOFTMAX 0 /* 1 is sparsemax, 2 entmax-1.5 */

#undef fold_sum
#undef fold_max
#undef first_of
#undef put_first
#undef softmax_heads
#undef softmax_heads_gradient
#undef longest_segment
#undef take_column
#undef put_column
#define fold_sum NAME(fold_sum)
#define fold_max NAME(fold_max)
#define first_of NAME(first_of)
#define put_first NAME(put_first)
#define softmax_heads NAME(softmax_heads)
#define softmax_heads_gradient NAME(softmax_heads_gradient)
#define longest_segment NAME(longest_segment)
#define take_column NAME(take_column)
#define put_column NAME(put_column)

/* Lane l of a vector belongs to head l % heads, where heads divides LANES: gives every lane the sum of its head. */
INLINE vec fold_sum(vec x, long heads) {
    if (heads == 1) return splat(total(x));
    REAL lanes[LANES];
    store(lanes, x);
    for (long half = LANES / 2; half >= heads; half /= 2)
        for (long l = 0; l < half; l++) lanes[l] += lanes[l + half];
    for (long l = heads; l < LANES; l++) lanes[l] = lanes[l - heads];
    return load(lanes);
}

INLINE vec fold_max(vec x, long heads) {
    if (heads == 1) return splat(largest(x));
    REAL lanes[LANES];
    store(lanes, x);
    for (long half = LANES / 2; half >= heads; half /= 2)
        for (long l = 0; l < half; l++) lanes[l] = lanes[l + half] > lanes[l] ? lanes[l + half] : lanes[l];
    for (long l = heads; l < LANES; l++) lanes[l] = lanes[l - heads];
    return load(lanes);
}

/* The first `count` numbers, and `filler` in the other lanes. Reads a whole vector where there is room for one: copying
   so few numbers takes longer. */
INLINE vec first_of(const REAL *from, long count, long room, REAL filler) {
    if (room >= LANES) {
        mask_vec place;
        for (long l = 0; l < LANES; l++) place[l] = l;
        return choose(place < (INTEGER)count, load(from), splat(filler));
    }
    REAL lanes[LANES];
    store(lanes, splat(filler));
    memcpy(lanes, from, count * sizeof(REAL));
    return load(lanes);
}

/* Writes the first `count` numbers. Where there is room, it writes all of them: later segments overwrite the others. */
INLINE void put_first(REAL *to, vec x, long count, long room) {
    if (room >= LANES) store(to, x);
    else memcpy(to, &x, count * sizeof(REAL));
}

/* A segment of `size` numbers whose heads alternate, with `room` for numbers from its beginning. Scores SATURATED below
   the largest get no weight: it would be lost in the rounding of the others. Adds NaN to *wrong if a score is not
   finite. */
INLINE void softmax_heads(const REAL *x, REAL *p, long size, long room, long heads, vec *wrong) {
    const long whole = size / LANES * LANES, left = size - whole;
    vec rest = {0}, best = splat(NEGATIVE_INFINITY), sums = {0}, zero = {0};
    if (left) {
        rest = first_of(x + whole, left, room - whole, NEGATIVE_INFINITY);
        best = rest;
        vec finite = first_of(x + whole, left, room - whole, 0);
        *wrong += finite - finite;
    }
    for (long j = 0; j < whole; j += LANES) {
        vec one = load(x + j);
        *wrong += one - one;
        best = larger(one, best);
    }
    best = fold_max(best, heads);
    for (long j = 0; j < whole; j += LANES) {
        vec below = load(x + j) - best;
        vec e = choose(below > -SATURATED, exponential(larger(below, splat(-SATURATED))), zero);
        sums += e;
        store(p + j, e);
    }
    vec last = zero;
    if (left) {
        vec below = rest - best;
        last = choose(below > -SATURATED, exponential(larger(below, splat(-SATURATED))), zero);
        sums += last;
    }
    vec share = 1 / fold_sum(sums, heads);
    for (long j = 0; j < whole; j += LANES) store(p + j, load(p + j) * share);
    if (left) put_first(p + whole, last * share, left, room - whole);
}

/* p (g - sum p g), for each head. */
INLINE void softmax_heads_gradient(const REAL *p, const REAL *g, REAL *out, long size, long room, long heads) {
    const long whole = size / LANES * LANES, left = size - whole;
    vec weight = {0}, grad = {0}, sums = {0};
    if (left) {
        weight = first_of(p + whole, left, room - whole, 0);
        grad = first_of(g + whole, left, room - whole, 0);
        sums = weight * grad;
    }
    for (long j = 0; j < whole; j += LANES) sums += load(p + j) * load(g + j);
    sums = fold_sum(sums, heads);
    for (long j = 0; j < whole; j += LANES) store(out + j, load(p + j) * (load(g + j) - sums));
    if (left) put_first(out + whole, weight * (grad - sums), left, room - whole);
}

INLINE long longest_segment(const int64_t *starts, long first, long last) {
    long most = 0;
    for (long i = first; i < last; i++) most = starts[i + 1] - starts[i] > most ? starts[i + 1] - starts[i] : most;
    return most;
}

INLINE void take_column(const REAL *from, REAL *column, long size, long heads) {
    for (long j = 0; j < size; j++) column[j] = from[j * heads];
}

INLINE void put_column(const REAL *column, REAL *to, long size, long heads) {
    for (long j = 0; j < size; j++) to[j * heads] = column[j];
}

/* Segments first..last-1. Returns 0, 1 if a score is not finite, -1 if out of memory. */
int NAME(segment_forward)(const REAL *scores, const int64_t *starts, REAL *out, long heads, long mapping, long first,
                          long last) {
    const long end = starts[last] * heads; /* other threads write behind it */
    int bad = 0;
    vec wrong = {0};
    if (mapping == SOFTMAX && heads <= LANES && LANES % heads == 0) {
        for (long i = first; i < last; i++) {
            const long begin = starts[i] * heads, size = starts[i + 1] * heads - begin, room = end - begin;
            if (!size) continue;
            switch (heads) { /* known to the compiler where it matters most */
                case 1: softmax_heads(scores + begin, out + begin, size, room, 1, &wrong); break;
                case 8: softmax_heads(scores + begin, out + begin, size, room, 8, &wrong); break;
                default: softmax_heads(scores + begin, out + begin, size, room, heads, &wrong);
            }
        }
        return total(wrong) != 0;
    }
    const long most = longest_segment(starts, first, last);
    REAL *column = malloc((3 * most + LANES) * sizeof(REAL));
    if (!column) return -1;
    REAL *weights = column + most, *found = weights + most;
    for (long i = first; i < last && !bad; i++) {
        const long size = starts[i + 1] - starts[i];
        if (!size) continue;
        for (long head = 0; head < heads; head++) {
            const long begin = starts[i] * heads + head;
            take_column(scores + begin, column, size, heads);
            if (mapping == SOFTMAX) softmax_heads(column, weights, size, size, 1, &wrong);
            else normalise_row(column, NULL, weights, size, found, mapping == 2, &bad);
            put_column(weights, out + begin, size, heads);
        }
    }
    free(column);
    return bad || total(wrong) != 0;
}

/* Segments first..last-1. Returns 0, or -1 if out of memory. */
int NAME(segment_backward)(const REAL *weights, const REAL *grad, const int64_t *starts, REAL *out, long heads,
                           long mapping, long first, long last) {
    const long end = starts[last] * heads;
    if (mapping == SOFTMAX && heads <= LANES && LANES % heads == 0) {
        for (long i = first; i < last; i++) {
            const long begin = starts[i] * heads, size = starts[i + 1] * heads - begin, room = end - begin;
            const REAL *p = weights + begin, *g = grad + begin;
            switch (heads) {
                case 1: softmax_heads_gradient(p, g, out + begin, size, room, 1); break;
                case 8: softmax_heads_gradient(p, g, out + begin, size, room, 8); break;
                default: softmax_heads_gradient(p, g, out + begin, size, room, heads);
            }
        }
        return 0;
    }
    const long most = longest_segment(starts, first, last);
    REAL *p = malloc((3 * most + 1) * sizeof(REAL));
    if (!p) return -1;
    REAL *g = p + most, *found = g + most;
    for (long i = first; i < last; i++) {
        const long size = starts[i + 1] - starts[i];
        for (long head = 0; head < heads; head++) {
            const long begin = starts[i] * heads + head;
            take_column(weights + begin, p, size, heads);
            take_column(grad + begin, g, size, heads);
            if (mapping == SOFTMAX) softmax_heads_gradient(p, g, found, size, size, 1);
            else gradient_rows(p, g, found, size, 0, 1, mapping == 2);
            put_column(found, out + begin, size, heads);
        }
    }
    free(p);
    return 0;
}
