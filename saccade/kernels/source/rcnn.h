/* All steps of recurrent convolutional units, one row after the other: see saccade/layers/rcnn.py.

   Rows of several directions follow each other, `rows` of each; every direction has its own matrix. `size` is a multiple
   of LANES. `kept` (steps, count), which may be null, says how much of each step is taken. */

#undef sigmoid_of
#undef tanh_of
#undef add_product
#undef mix
#define sigmoid_of NAME(sigmoid_of)
#define tanh_of NAME(tanh_of)
#define add_product NAME(add_product)
#define mix NAME(mix)

INLINE vec sigmoid_of(vec x) {
    x = larger(splat(-SATURATED), -larger(splat(-SATURATED), x));
    return reciprocal(1 + exponential(x));
}

INLINE vec tanh_of(vec x) { return 2 * sigmoid_of(2 * x) - 1; }

/* to_j += sum_i x_i matrix_ij, four rows of the matrix at a time. */
INLINE void add_product(REAL *to, const REAL *x, const REAL *matrix, long size) {
    for (long i = 0; i < size; i += 4) {
        const REAL *row = matrix + i * size;
        vec a = splat(x[i]), b = splat(x[i + 1]), c = splat(x[i + 2]), d = splat(x[i + 3]);
        for (long j = 0; j < size; j += LANES) {
            vec sum = load(to + j) + a * load(row + j) + b * load(row + size + j);
            store(to + j, sum + (c * load(row + 2 * size + j) + d * load(row + 3 * size + j)));
        }
    }
}

/* Between a and b, exactly b if the weight is 1. */
INLINE vec mix(vec a, vec b, REAL weight) {
    return weight < (REAL)0.5 ? a + weight * (b - a) : b - (1 - weight) * (b - a);
}

/* `states`, `singles` and `pairs` (steps + 1, count, size) begin with the states before the first step; `transposed`
   (directions, size, size) is U^T, `bias` (count, size). Work is counted in rows. */
void NAME(rcnn_forward)(const REAL *projected, const REAL *transposed, const REAL *bias, const REAL *kept, REAL *states,
                        REAL *singles, REAL *pairs, REAL *gates, REAL *news, long steps, long count, long rows,
                        long size, long first, long last) {
    for (long row = first; row < last; row++) {
        const REAL *matrix = transposed + row / rows * size * size;
        for (long t = 0; t < steps; t++) {
            long place = (t * count + row) * size, next = place + count * size;
            const REAL *x = projected + 3 * place;
            REAL *gate = gates + place;
            REAL weight = kept ? kept[t * count + row] : 1;
            memcpy(gate, x, size * sizeof(REAL));
            add_product(gate, states + place, matrix, size);
            for (long i = 0; i < size; i += LANES) {
                vec g = sigmoid_of(load(gate + i)), one = load(x + size + i);
                vec single = load(singles + place + i), pair = load(pairs + place + i);
                vec two = single + load(x + 2 * size + i);
                vec new_single = one + g * (single - one), new_pair = two + g * (pair - two);
                vec new = tanh_of(new_pair + load(bias + row * size + i));
                store(gate + i, g);
                store(news + place + i, new);
                store(singles + next + i, mix(single, new_single, weight));
                store(pairs + next + i, mix(pair, new_pair, weight));
                store(states + next + i, mix(load(states + place + i), new, weight));
            }
        }
    }
}

/* The gradients: of the projected inputs, of the states before the first step (`hidden`, `single`, `pair`, which come in
   as zeros), of the bias for each row, and of `kept` if it is given. `matrices` (directions, size, size) is U. */
void NAME(rcnn_backward)(const REAL *projected, const REAL *matrices, const REAL *kept, const REAL *states,
                         const REAL *singles, const REAL *pairs, const REAL *gates, const REAL *news,
                         const REAL *of_states, const REAL *of_singles, const REAL *of_pairs, REAL *inputs,
                         REAL *of_hidden, REAL *of_single, REAL *of_pair, REAL *of_bias, REAL *of_kept, long steps,
                         long count, long rows, long size, long first, long last) {
    for (long row = first; row < last; row++) {
        const REAL *matrix = matrices + row / rows * size * size;
        REAL *hidden = of_hidden + row * size, *single = of_single + row * size, *pair = of_pair + row * size;
        for (long t = steps; t-- > 0;) {
            long place = (t * count + row) * size;
            const REAL *x = projected + 3 * place;
            REAL *to = inputs + 3 * place, weight = kept ? kept[t * count + row] : 1;
            vec moved = {0};
            for (long i = 0; i < size; i += LANES) {
                vec g = load(gates + place + i), new = load(news + place + i), enters = 1 - g;
                vec before = load(singles + place + i);
                vec to_single = before - load(x + size + i), to_pair = load(pairs + place + i) - before;
                to_pair -= load(x + 2 * size + i);
                vec h = load(hidden + i) + load(of_states + place + i);
                vec s = load(single + i) + load(of_singles + place + i);
                vec p = load(pair + i) + load(of_pairs + place + i);
                moved += h * (new - load(states + place + i)) - enters * (s * to_single + p * to_pair);
                vec own_h = h * weight, own_s = s * weight, own_p = p * weight;
                vec bent = own_h * (1 - new * new);
                store(of_bias + row * size + i, load(of_bias + row * size + i) + bent);
                own_p += bent;
                vec of_second = own_p * enters;
                store(to + i, (own_s * to_single + own_p * to_pair) * g * enters);
                store(to + size + i, own_s * enters);
                store(to + 2 * size + i, of_second);
                store(hidden + i, h * (1 - weight));
                store(single + i, own_s * g + of_second + s * (1 - weight));
                store(pair + i, own_p * g + p * (1 - weight));
            }
            add_product(hidden, to, matrix, size);
            if (of_kept) of_kept[t * count + row] = total(moved);
        }
    }
}
