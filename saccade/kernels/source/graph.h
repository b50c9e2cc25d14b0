/* Attention along the edges of a graph: the scores of GAT and GATv2, and reading values by their weights.

   Node i attends to neighbours[starts[i]] ... neighbours[starts[i + 1] - 1]. Features are (nodes, heads, dim), weights
   and scores (edges, heads). Passes that write to the neighbours split them between threads: each thread walks along all
   edges, and handles those that lead into its range first..last-1. So nothing is written twice, and sums are taken in
   the same order whatever the number of threads. */

#undef AHEAD
#define AHEAD 4 /* edges by which reads run ahead */

#undef fetch
#undef read_neighbours
#undef read_gradient
#undef gatv2_pairs
#undef gatv2_queries
#undef gatv2_keys
#undef leaky
#define fetch NAME(fetch)
#define read_neighbours NAME(read_neighbours)
#define read_gradient NAME(read_gradient)
#define gatv2_pairs NAME(gatv2_pairs)
#define gatv2_queries NAME(gatv2_queries)
#define gatv2_keys NAME(gatv2_keys)
#define leaky NAME(leaky)

/* Calls a function with a constant dim, for which the compiler writes vector code, or any other. */
#undef WITH_DIM
#define WITH_DIM(call) \
    switch (dim) {     \
        case 4: { const long width = 4; call; break; } \
        case 8: { const long width = 8; call; break; } \
        case 16: { const long width = 16; call; break; } \
        case 32: { const long width = 32; call; break; } \
        case 64: { const long width = 64; call; break; } \
        default: { const long width = dim; call; } \
    }

INLINE void fetch(const REAL *from, long size) {
    for (long byte = 0; byte < size * (long)sizeof(REAL); byte += 64) __builtin_prefetch((const char *)from + byte);
}

INLINE REAL leaky(REAL x, REAL slope) { return x > 0 ? x : slope * x; }

INLINE void read_neighbours(const REAL *restrict weights, const REAL *restrict values, const int64_t *starts,
                            const int64_t *neighbours, REAL *restrict out, long heads, long dim, long first, long last) {
    const long size = heads * dim, end = starts[last];
    for (long i = first; i < last; i++) {
        REAL *restrict o = out + i * size;
        memset(o, 0, size * sizeof(REAL));
        for (long e = starts[i]; e < starts[i + 1]; e++) {
            if (e + AHEAD < end) fetch(values + neighbours[e + AHEAD] * size, size);
            const REAL *restrict v = values + neighbours[e] * size, *restrict w = weights + e * heads;
            for (long h = 0; h < heads; h++)
                for (long d = 0; d < dim; d++) o[h * dim + d] += w[h] * v[h * dim + d];
        }
    }
}

/* Nodes first..last-1 read their neighbours' values. */
void NAME(gather_forward)(const REAL *weights, const REAL *values, const int64_t *starts, const int64_t *neighbours,
                          REAL *out, long heads, long dim, long first, long last) {
    WITH_DIM(read_neighbours(weights, values, starts, neighbours, out, heads, width, first, last))
}

INLINE void read_gradient(const REAL *restrict weights, const REAL *restrict values, const REAL *restrict grad,
                          const int64_t *starts, const int64_t *neighbours, REAL *restrict of_weights,
                          REAL *restrict of_values, long nodes, long heads, long dim, long first, long last) {
    const long size = heads * dim, end = starts[nodes];
    for (long i = 0; i < nodes; i++) {
        const REAL *restrict g = grad + i * size;
        for (long e = starts[i]; e < starts[i + 1]; e++) {
            const long to = neighbours[e];
            if (to < first || to >= last) continue;
            if (e + AHEAD < end && neighbours[e + AHEAD] >= first && neighbours[e + AHEAD] < last) {
                fetch(values + neighbours[e + AHEAD] * size, size);
                fetch(of_values + neighbours[e + AHEAD] * size, size);
            }
            const REAL *restrict v = values + to * size, *restrict w = weights + e * heads;
            REAL *restrict o = of_values + to * size;
            for (long h = 0; h < heads; h++) {
                REAL sum = 0;
                if (dim % LANES == 0) {
                    vec sums = {0};
                    for (long d = h * dim; d < (h + 1) * dim; d += LANES) {
                        vec direction = load(g + d);
                        sums += direction * load(v + d);
                        store(o + d, load(o + d) + w[h] * direction);
                    }
                    sum = total(sums);
                } else {
                    for (long d = h * dim; d < (h + 1) * dim; d++) {
                        sum += g[d] * v[d];
                        o[d] += w[h] * g[d];
                    }
                }
                of_weights[e * heads + h] = sum;
            }
        }
    }
}

/* The gradients of weights and values, for the neighbours first..last-1; `of_values` begins with zeros. */
void NAME(gather_backward)(const REAL *weights, const REAL *values, const REAL *grad, const int64_t *starts,
                           const int64_t *neighbours, REAL *of_weights, REAL *of_values, long nodes, long heads,
                           long dim, long first, long last) {
    WITH_DIM(read_gradient(weights, values, grad, starts, neighbours, of_weights, of_values, nodes, heads, width, first,
                           last))
}

/* leaky(query_i + key_j + edge_ij), for nodes first..last-1: one number for each head. `edges` may be NULL. */
void NAME(gat_forward)(const REAL *queries, const REAL *keys, const REAL *edges, const int64_t *starts,
                       const int64_t *neighbours, REAL *out, double slope, long heads, long first, long last) {
    for (long i = first; i < last; i++)
        for (long e = starts[i]; e < starts[i + 1]; e++)
            for (long h = 0; h < heads; h++) {
                REAL x = queries[i * heads + h] + keys[neighbours[e] * heads + h];
                out[e * heads + h] = leaky(edges ? x + edges[e * heads + h] : x, slope);
            }
}

/* The gradients of each edge's sum, and of the queries, which begin with zeros. */
void NAME(gat_backward)(const REAL *queries, const REAL *keys, const REAL *edges, const REAL *grad,
                        const int64_t *starts, const int64_t *neighbours, REAL *of_edges, REAL *of_queries,
                        double slope, long heads, long first, long last) {
    for (long i = first; i < last; i++)
        for (long e = starts[i]; e < starts[i + 1]; e++)
            for (long h = 0; h < heads; h++) {
                REAL x = queries[i * heads + h] + keys[neighbours[e] * heads + h];
                if (edges) x += edges[e * heads + h];
                REAL g = grad[e * heads + h] * (x > 0 ? 1 : (REAL)slope);
                of_edges[e * heads + h] = g;
                of_queries[i * heads + h] += g;
            }
}

/* Adds the rows of `edges` (count, size) to those of their neighbours first..last-1. */
void NAME(scatter_sum)(const REAL *edges, const int64_t *neighbours, REAL *out, long count, long size, long first,
                       long last) {
    for (long e = 0; e < count; e++) {
        const long to = neighbours[e];
        if (to < first || to >= last) continue;
        for (long d = 0; d < size; d++) out[to * size + d] += edges[e * size + d];
    }
}

INLINE void gatv2_pairs(const REAL *restrict queries, const REAL *restrict keys, const REAL *restrict edges,
                        const REAL *restrict vector, const int64_t *starts, const int64_t *neighbours,
                        REAL *restrict out, REAL slope, long heads, long dim, long first, long last) {
    const long size = heads * dim, end = starts[last];
    for (long i = first; i < last; i++)
        for (long e = starts[i]; e < starts[i + 1]; e++) {
            if (e + AHEAD < end) fetch(keys + neighbours[e + AHEAD] * size, size);
            const REAL *restrict q = queries + i * size, *restrict k = keys + neighbours[e] * size;
            for (long h = 0; h < heads; h++) {
                REAL sum = 0;
                if (dim % LANES == 0) {
                    vec sums = {0};
                    for (long d = h * dim; d < (h + 1) * dim; d += LANES) {
                        vec x = load(q + d) + load(k + d);
                        if (edges) x += load(edges + e * size + d);
                        sums += load(vector + d) * choose(x > 0, x, slope * x);
                    }
                    sum = total(sums);
                } else {
                    for (long d = h * dim; d < (h + 1) * dim; d++) {
                        REAL x = q[d] + k[d];
                        if (edges) x += edges[e * size + d];
                        sum += vector[d] * leaky(x, slope);
                    }
                }
                out[e * heads + h] = sum;
            }
        }
}

/* vector . leaky(query_i + key_j + edge_ij), for nodes first..last-1. `edges` may be NULL. */
void NAME(gatv2_forward)(const REAL *queries, const REAL *keys, const REAL *edges, const REAL *vector,
                         const int64_t *starts, const int64_t *neighbours, REAL *out, double slope, long heads, long dim,
                         long first, long last) {
    if (edges) WITH_DIM(gatv2_pairs(queries, keys, edges, vector, starts, neighbours, out, slope, heads, width, first, last))
    else WITH_DIM(gatv2_pairs(queries, keys, NULL, vector, starts, neighbours, out, slope, heads, width, first, last))
}

INLINE void gatv2_queries(const REAL *restrict queries, const REAL *restrict keys, const REAL *restrict edges,
                          const REAL *restrict vector, const REAL *restrict grad, const int64_t *starts,
                          const int64_t *neighbours, REAL *restrict of_queries, REAL *restrict of_edges,
                          REAL *restrict of_vector, REAL slope, long heads, long dim, long first, long last) {
    const long size = heads * dim, end = starts[last];
    for (long i = first; i < last; i++)
        for (long e = starts[i]; e < starts[i + 1]; e++) {
            if (e + AHEAD < end) fetch(keys + neighbours[e + AHEAD] * size, size);
            const REAL *restrict q = queries + i * size, *restrict k = keys + neighbours[e] * size;
            REAL *restrict o = of_queries + i * size;
            for (long h = 0; h < heads; h++) {
                const REAL g = grad[e * heads + h];
                for (long d = h * dim; d < (h + 1) * dim; d++) {
                    REAL x = q[d] + k[d];
                    if (edges) x += edges[e * size + d];
                    REAL part = g * (x > 0 ? 1 : slope);
                    of_vector[d] += part * x;
                    o[d] += part * vector[d];
                    if (edges) of_edges[e * size + d] = part * vector[d];
                }
            }
        }
}

/* The gradients of queries, edges and the vector. Parts first..last-1 of `parts`; `of_vector` (parts, heads, dim) and
   `of_queries` begin with zeros. */
void NAME(gatv2_backward)(const REAL *queries, const REAL *keys, const REAL *edges, const REAL *vector,
                          const REAL *grad, const int64_t *starts, const int64_t *neighbours, REAL *of_queries,
                          REAL *of_edges, REAL *of_vector, double slope, long nodes, long parts, long heads, long dim,
                          long first, long last) {
    for (long part = first; part < last; part++) {
        const long begin = nodes * part / parts, end = nodes * (part + 1) / parts;
        REAL *sum = of_vector + part * heads * dim;
        if (edges)
            WITH_DIM(gatv2_queries(queries, keys, edges, vector, grad, starts, neighbours, of_queries, of_edges, sum,
                                   slope, heads, width, begin, end))
        else
            WITH_DIM(gatv2_queries(queries, keys, NULL, vector, grad, starts, neighbours, of_queries, NULL, sum, slope,
                                   heads, width, begin, end))
    }
}

INLINE void gatv2_keys(const REAL *restrict queries, const REAL *restrict keys, const REAL *restrict edges,
                       const REAL *restrict vector, const REAL *restrict grad, const int64_t *starts,
                       const int64_t *neighbours, REAL *restrict of_keys, REAL slope, long nodes, long heads, long dim,
                       long first, long last) {
    const long size = heads * dim, end = starts[nodes];
    for (long i = 0; i < nodes; i++)
        for (long e = starts[i]; e < starts[i + 1]; e++) {
            const long to = neighbours[e];
            if (to < first || to >= last) continue;
            if (e + AHEAD < end && neighbours[e + AHEAD] >= first && neighbours[e + AHEAD] < last) {
                fetch(keys + neighbours[e + AHEAD] * size, size);
                fetch(of_keys + neighbours[e + AHEAD] * size, size);
            }
            const REAL *restrict q = queries + i * size, *restrict k = keys + to * size;
            REAL *restrict o = of_keys + to * size;
            for (long h = 0; h < heads; h++) {
                const REAL g = grad[e * heads + h];
                for (long d = h * dim; d < (h + 1) * dim; d++) {
                    REAL x = q[d] + k[d];
                    if (edges) x += edges[e * size + d];
                    o[d] += g * (x > 0 ? 1 : slope) * vector[d];
                }
            }
        }
}

/* The gradient of the keys first..last-1, which begins with zeros. */
void NAME(gatv2_backward_keys)(const REAL *queries, const REAL *keys, const REAL *edges, const REAL *vector,
                               const REAL *grad, const int64_t *starts, const int64_t *neighbours, REAL *of_keys,
                               double slope, long nodes, long heads, long dim, long first, long last) {
    if (edges)
        WITH_DIM(gatv2_keys(queries, keys, edges, vector, grad, starts, neighbours, of_keys, slope, nodes, heads, width,
                            first, last))
    else
        WITH_DIM(gatv2_keys(queries, keys, NULL, vector, grad, starts, neighbours, of_keys, slope, nodes, heads, width,
                            first, last))
}

/* The columns and values of a matrix (rows, width) that are not zero, row after row; row i begins at starts[i]. Returns
   their number, or -1 if there are more than `most`. */
int NAME(nonzero_rows)(const REAL *matrix, int64_t *starts, int64_t *columns, REAL *values, long rows, long width,
                       long most, long first, long last) {
    long count = 0;
    (void)first, (void)last; /* one part */
    for (long i = 0; i < rows; i++) {
        const REAL *row = matrix + i * width;
        starts[i] = count;
        for (long j = 0; j < width; j += LANES) {
            const long here = width - j < LANES ? width - j : LANES;
            if (here == LANES && !any(load(row + j) != 0)) continue;
            for (long k = j; k < j + here; k++)
                if (row[k] != 0) {
                    if (count == most) return -1;
                    columns[count] = k;
                    values[count++] = row[k];
                }
        }
    }
    starts[rows] = count;
    return count;
}
