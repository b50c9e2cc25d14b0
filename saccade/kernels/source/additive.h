/* Additive scores v . tanh(q + k) and their gradients.

   tanh(q + k) = 1 - 2 u, u = 1 / (1 + e), e = exp(2q) exp(2k). The exponentials of queries and keys are taken once, so the
   inner loop has no transcendental function. It needs |2q| and |2k| up to SATURATED, so that their product stays
   finite; blocks beyond that, and single queries, take exp(2(q + k)) of each pair ("directly") instead. */

#undef QUERY_BLOCK
#undef KEY_BLOCK
#undef HIDDEN_BLOCK
#define QUERY_BLOCK 64L
#define KEY_BLOCK 16L
#define HIDDEN_BLOCK 256L

#undef within_range
#undef copy_block
#undef exponentiate
#undef odds
#undef score_tile
#undef score_block
#define within_range NAME(within_range)
#define copy_block NAME(copy_block)
#define exponentiate NAME(exponentiate)
#define odds NAME(odds)
#define score_tile NAME(score_tile)
#define score_block NAME(score_block)

/* Copies rows of `width` numbers into rows of `padded` numbers, filling with zeros. */
INLINE void copy_block(REAL *to, long padded, const REAL *from, long stride, long rows, long width) {
    for (long i = 0; i < rows; i++) {
        memcpy(to + i * padded, from + i * stride, width * sizeof(REAL));
        for (long h = width; h < padded; h++) to[i * padded + h] = 0;
    }
}

/* Whether |2x| <= SATURATED everywhere, which is false for NaN. `size` is a multiple of LANES. */
INLINE int within_range(const REAL *x, long size) {
    mask_vec outside = {0};
    for (long h = 0; h < size; h += LANES) {
        vec value = load(x + h);
        outside |= ~((value <= SATURATED / 2) & (value >= -SATURATED / 2));
    }
    return !any(outside);
}

INLINE void exponentiate(REAL *to, const REAL *from, long size) {
    for (long h = 0; h < size; h += LANES) store(to + h, exponential(load(from + h) * 2));
}

/* exp(2(q + k)), from exp(2q) and exp(2k) or directly from q and k. */
INLINE vec odds(vec query, vec key, int direct) {
    if (!direct) return query * key;
    vec x = (query + key) * 2;
    x = choose(x > SATURATED, splat(SATURATED), x);
    x = choose(x < -SATURATED, splat(-SATURATED), x);
    return exponential(x);
}

INLINE void score_tile(const REAL *query, const REAL *keys, const REAL *vector, long width, long rows, long columns,
                       int direct, REAL offset, REAL *out, long out_stride) {
    vec sums[2][2] = {{{0}}};
    for (long h = 0; h < width; h += LANES) {
        vec weight = load(vector + h);
        for (long j = 0; j < columns; j++) {
            vec key = load(keys + j * width + h);
            for (long i = 0; i < rows; i++) sums[i][j] += weight * reciprocal(odds(load(query + i * width + h), key, direct) + 1);
        }
    }
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++) out[i * out_stride + j] += offset - 2 * total(sums[i][j]);
}

INLINE void score_block(const REAL *query, const REAL *keys, const REAL *vector, long width, long rows, long columns,
                        int direct, REAL offset, REAL *out, long out_stride) {
    long i = 0;
    for (; i + 2 <= rows; i += 2) {
        const REAL *q = query + i * width;
        REAL *o = out + i * out_stride;
        long j = 0;
        for (; j + 2 <= columns; j += 2)
            score_tile(q, keys + j * width, vector, width, 2, 2, direct, offset, o + j, out_stride);
        if (j < columns) score_tile(q, keys + j * width, vector, width, 2, 1, direct, offset, o + j, out_stride);
    }
    if (i == rows) return;
    const REAL *q = query + i * width;
    REAL *o = out + i * out_stride;
    long j = 0;
    for (; j + 2 <= columns; j += 2)
        score_tile(q, keys + j * width, vector, width, 1, 2, direct, offset, o + j, out_stride);
    if (j < columns) score_tile(q, keys + j * width, vector, width, 1, 1, direct, offset, o + j, out_stride);
}

/* Work is counted in blocks of QUERY_BLOCK queries of one batch row: items first..last-1 of batch * ceil(queries /
   QUERY_BLOCK). `out` (batch, queries, keys) may hold anything before. The keys of one batch row begin `key_stride`
   numbers after those of the row before: they may be the first of more. */
void NAME(additive_forward)(const REAL *query, const REAL *keys, const REAL *vector, REAL *out, long queries,
                            long key_count, long hidden, long key_stride, long first, long last) {
    REAL raw_query[QUERY_BLOCK * HIDDEN_BLOCK], exp_query[QUERY_BLOCK * HIDDEN_BLOCK];
    REAL raw_keys[KEY_BLOCK * HIDDEN_BLOCK], exp_keys[KEY_BLOCK * HIDDEN_BLOCK], weights[HIDDEN_BLOCK];
    long blocks = (queries + QUERY_BLOCK - 1) / QUERY_BLOCK;
    for (long item = first; item < last; item++) {
        long batch = item / blocks, start = item % blocks * QUERY_BLOCK;
        long rows = queries - start < QUERY_BLOCK ? queries - start : QUERY_BLOCK;
        const REAL *q = query + (batch * queries + start) * hidden;
        REAL *o = out + (batch * queries + start) * key_count;
        memset(o, 0, rows * key_count * sizeof(REAL));
        for (long h = 0; h < hidden; h += HIDDEN_BLOCK) {
            long size = hidden - h < HIDDEN_BLOCK ? hidden - h : HIDDEN_BLOCK;
            long width = (size + LANES - 1) / LANES * LANES;
            copy_block(weights, width, vector + h, 0, 1, size);
            double offset = 0;
            for (long c = 0; c < size; c++) offset += weights[c];
            copy_block(raw_query, width, q + h, hidden, rows, size);
            int direct_query = rows == 1 || !within_range(raw_query, rows * width);
            if (!direct_query) exponentiate(exp_query, raw_query, rows * width);
            for (long j = 0; j < key_count; j += KEY_BLOCK) {
                long columns = key_count - j < KEY_BLOCK ? key_count - j : KEY_BLOCK;
                const REAL *k = keys + batch * key_stride + j * hidden + h;
                if (size != hidden || width != size) {
                    copy_block(raw_keys, width, k, hidden, columns, size);
                    k = raw_keys;
                }
                if (direct_query || !within_range(k, columns * width)) {
                    score_block(raw_query, k, weights, width, rows, columns, 1, offset, o + j, key_count);
                } else {
                    exponentiate(exp_keys, k, columns * width);
                    score_block(exp_query, exp_keys, weights, width, rows, columns, 0, offset, o + j, key_count);
                }
            }
        }
    }
}

/* The gradients of query, keys and vector need tanh = e u - u and its slope 1 - tanh^2 = 4 e u u of each pair, a form
   that is exact to the last digits however small the slope, and sum them over keys, over queries and over both,
   separately for each hidden unit. So a block of work is a slice of hidden units of one batch row, and no two threads
   ever add to the same number. */

#undef GRAD_QUERIES
#undef GRAD_KEYS
#undef SLICE
#define GRAD_QUERIES 128L
#define GRAD_KEYS 128L
#define SLICE (2 * LANES)

#undef backward_tile
#undef backward_block
#undef backward_slice
#undef backward_streaming
#define backward_tile NAME(backward_tile)
#define backward_block NAME(backward_block)
#define backward_slice NAME(backward_slice)
#define backward_streaming NAME(backward_streaming)

/* `rows` queries against all keys of the block, for one vector of hidden units (rows of SLICE numbers). */
INLINE void backward_tile(const REAL *query, const REAL *keys, const REAL *grad, long grad_stride, long columns,
                          long rows, int direct, REAL *grad_query, REAL *grad_keys, REAL *grad_vector) {
    vec q[4], sums[4], vector_sum = {0};
    for (long i = 0; i < rows; i++) {
        q[i] = load(query + i * SLICE);
        sums[i] = (vec){0};
    }
    for (long j = 0; j < columns; j++) {
        vec key = load(keys + j * SLICE), key_sum = load(grad_keys + j * SLICE);
        for (long i = 0; i < rows; i++) {
            vec e = odds(q[i], key, direct), u = reciprocal(e + 1), eu = e * u, slope = eu * u;
            REAL g = grad[i * grad_stride + j];
            sums[i] += g * slope;
            key_sum += g * slope;
            vector_sum += g * (eu - u);
        }
        store(grad_keys + j * SLICE, key_sum);
    }
    for (long i = 0; i < rows; i++) store(grad_query + i * SLICE, load(grad_query + i * SLICE) + sums[i]);
    store(grad_vector, load(grad_vector) + vector_sum);
}

INLINE void backward_block(const REAL *query, const REAL *keys, const REAL *grad, long grad_stride, long rows,
                           long columns, int direct, REAL *grad_query, REAL *grad_keys, REAL *grad_vector) {
    for (long h = 0; h < SLICE; h += LANES) {
        long i = 0;
        for (; i + 4 <= rows; i += 4)
            backward_tile(query + i * SLICE + h, keys + h, grad + i * grad_stride, grad_stride, columns, 4, direct,
                          grad_query + i * SLICE + h, grad_keys + h, grad_vector + h);
        for (; i < rows; i++)
            backward_tile(query + i * SLICE + h, keys + h, grad + i * grad_stride, grad_stride, columns, 1, direct,
                          grad_query + i * SLICE + h, grad_keys + h, grad_vector + h);
    }
}

/* One slice of hidden units of one batch row. All pointers are at the first query or key and the slice's first unit. */
static void backward_slice(const REAL *query, const REAL *keys, const REAL *vector, const REAL *grad, REAL *grad_query,
                           REAL *grad_keys, REAL *grad_vector, long queries, long key_count, long hidden, long size) {
    REAL raw_query[GRAD_QUERIES * SLICE], exp_query[GRAD_QUERIES * SLICE], query_sums[GRAD_QUERIES * SLICE];
    REAL raw_keys[GRAD_KEYS * SLICE], exp_keys[GRAD_KEYS * SLICE], key_sums[GRAD_KEYS * SLICE];
    REAL vector_sums[SLICE] = {0};
    for (long i = 0; i < queries; i++) memset(grad_query + i * hidden, 0, size * sizeof(REAL));
    for (long j = 0; j < key_count; j += GRAD_KEYS) {
        long columns = key_count - j < GRAD_KEYS ? key_count - j : GRAD_KEYS;
        copy_block(raw_keys, SLICE, keys + j * hidden, hidden, columns, size);
        int direct_keys = !within_range(raw_keys, columns * SLICE);
        if (!direct_keys) exponentiate(exp_keys, raw_keys, columns * SLICE);
        memset(key_sums, 0, columns * SLICE * sizeof(REAL));
        for (long i = 0; i < queries; i += GRAD_QUERIES) {
            long rows = queries - i < GRAD_QUERIES ? queries - i : GRAD_QUERIES;
            const REAL *g = grad + i * key_count + j;
            copy_block(raw_query, SLICE, query + i * hidden, hidden, rows, size);
            memset(query_sums, 0, rows * SLICE * sizeof(REAL));
            if (direct_keys || !within_range(raw_query, rows * SLICE)) {
                backward_block(raw_query, raw_keys, g, key_count, rows, columns, 1, query_sums, key_sums, vector_sums);
            } else {
                exponentiate(exp_query, raw_query, rows * SLICE);
                backward_block(exp_query, exp_keys, g, key_count, rows, columns, 0, query_sums, key_sums, vector_sums);
            }
            for (long r = 0; r < rows; r++)
                for (long h = 0; h < size; h++) grad_query[(i + r) * hidden + h] += query_sums[r * SLICE + h];
        }
        for (long c = 0; c < columns; c++)
            for (long h = 0; h < size; h++) grad_keys[(j + c) * hidden + h] = key_sums[c * SLICE + h] * 4 * vector[h];
    }
    for (long i = 0; i < queries; i++)
        for (long h = 0; h < size; h++) grad_query[i * hidden + h] *= 4 * vector[h];
    memcpy(grad_vector, vector_sums, size * sizeof(REAL));
}

/* One query: each pair is visited once, so the keys are streamed in the order of memory. */
static void backward_streaming(const REAL *query, const REAL *keys, const REAL *vector, const REAL *grad,
                               REAL *grad_query, REAL *grad_keys, REAL *grad_vector, long key_count, long hidden) {
    for (long h = 0; h < hidden; h += HIDDEN_BLOCK) {
        REAL q[HIDDEN_BLOCK], v[HIDDEN_BLOCK], tail[LANES], query_sums[HIDDEN_BLOCK] = {0};
        REAL vector_sums[HIDDEN_BLOCK] = {0};
        long size = hidden - h < HIDDEN_BLOCK ? hidden - h : HIDDEN_BLOCK;
        long width = (size + LANES - 1) / LANES * LANES, whole = size / LANES * LANES;
        copy_block(q, width, query + h, 0, 1, size);
        copy_block(v, width, vector + h, 0, 1, size);
        for (long c = 0; c < size; c++) v[c] *= 4;
        for (long j = 0; j < key_count; j++) {
            const REAL *k = keys + j * hidden + h;
            REAL *gk = grad_keys + j * hidden + h, g = grad[j];
            for (long c = 0; c < width; c += LANES) {
                if (c == whole) copy_block(tail, LANES, k + c, 0, 1, size - c);
                vec key = c == whole ? load(tail) : load(k + c);
                vec e = odds(load(q + c), key, 1), u = reciprocal(e + 1), eu = e * u, slope = g * eu * u;
                store(query_sums + c, load(query_sums + c) + slope);
                store(vector_sums + c, load(vector_sums + c) + g * (eu - u));
                slope *= load(v + c);
                if (c == whole) {
                    store(tail, slope);
                    memcpy(gk + c, tail, (size - c) * sizeof(REAL));
                } else {
                    store(gk + c, slope);
                }
            }
        }
        for (long c = 0; c < size; c++) grad_query[h + c] = query_sums[c] * v[c];
        memcpy(grad_vector + h, vector_sums, size * sizeof(REAL));
    }
}

/* Work is counted in items first..last-1: batch rows if there is one query, otherwise slices of hidden units of batch
   rows. The gradient of the vector is left as one row for each batch row. */
void NAME(additive_backward)(const REAL *query, const REAL *keys, const REAL *vector, const REAL *grad,
                             REAL *grad_query, REAL *grad_keys, REAL *grad_vector, long queries, long key_count,
                             long hidden, long key_stride, long first, long last) {
    long slices = queries == 1 ? 1 : (hidden + SLICE - 1) / SLICE;
    for (long item = first; item < last; item++) {
        long batch = item / slices, h = item % slices * SLICE;
        const REAL *q = query + batch * queries * hidden + h, *k = keys + batch * key_stride + h;
        const REAL *g = grad + batch * queries * key_count;
        REAL *gq = grad_query + batch * queries * hidden + h, *gk = grad_keys + batch * key_count * hidden + h;
        REAL *gv = grad_vector + batch * hidden + h;
        if (queries == 1)
            backward_streaming(q, k, vector, g, gq, gk, gv, key_count, hidden);
        else
            backward_slice(q, k, vector + h, g, gq, gk, gv, queries, key_count, hidden,
                           hidden - h < SLICE ? hidden - h : SLICE);
    }
}

long NAME(additive_forward_items)(long batch, long queries) {
    return batch * ((queries + QUERY_BLOCK - 1) / QUERY_BLOCK);
}

long NAME(additive_backward_items)(long batch, long queries, long hidden) {
    return batch * (queries == 1 ? 1 : (hidden + SLICE - 1) / SLICE);
}
