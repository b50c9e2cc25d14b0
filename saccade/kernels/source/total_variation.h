/* The proximal operator of total variation: argmin_x 1/2 |x - y|^2 + strength * sum |x_{j+1} - x_j|.

   Johnson's dynamic program: the derivative of the cost of the first j elements, as a function of x_j, is piecewise
   linear and increasing. It is stored as its knots; clipping it to [-strength, strength] drops knots at the ends and adds
   one on either side, so a row takes linear time. Going back, x_j is x_{j+1} clamped to where the derivative of step j
   is within those bounds. */

#undef prox_row
#define prox_row NAME(prox_row)

/* y has `size` numbers and becomes x; `work` has room for 8 * size + 8. */
static void prox_row(double *y, long size, double strength, double *work) {
    double *lower = work, *upper = work + size;
    double *knot = work + 2 * size, *slope = knot + 2 * size + 2, *intercept = slope + 2 * size + 2;
    long left = size, right = size - 1; /* knots left..right, empty */
    for (long j = 0; j < size - 1; j++) {
        double edge = j ? strength : 0; /* beyond the knots the derivative of earlier steps is -+strength */
        double a = 1, b = -y[j] - edge;
        while (left <= right && a * knot[left] + b < -strength) {
            a += slope[left];
            b += intercept[left++];
        }
        lower[j] = (-strength - b) / a;
        double c = 1, d = -y[j] + edge;
        while (left <= right && c * knot[right] + d > strength) {
            c -= slope[right];
            d -= intercept[right--];
        }
        upper[j] = (strength - d) / c;
        left--;
        knot[left] = lower[j];
        slope[left] = a;
        intercept[left] = b + strength;
        right++;
        knot[right] = upper[j];
        slope[right] = -c;
        intercept[right] = strength - d;
    }
    double a = 1, b = -y[size - 1] - (size > 1 ? strength : 0);
    while (left <= right && a * knot[left] + b < 0) {
        a += slope[left];
        b += intercept[left++];
    }
    y[size - 1] = -b / a;
    for (long j = size - 2; j >= 0; j--) {
        double x = y[j + 1];
        y[j] = x < lower[j] ? lower[j] : x > upper[j] ? upper[j] : x;
    }
}

/* Rows first..last-1. Masked elements are removed from the chain; in `out` they repeat the element before them (the
   first one if there is none before). Returns -1 if out of memory. */
int NAME(total_variation_prox)(const REAL *rows, const uint8_t *mask, REAL *out, double strength, long size,
                               long first, long last) {
    if (size == 0) return 0;
    double *chain = malloc((9 * size + 8) * sizeof(double));
    if (!chain) return -1;
    for (long i = first; i < last; i++) {
        const REAL *row = rows + i * size;
        const uint8_t *keep = mask ? mask + i * size : NULL;
        long count = 0;
        for (long j = 0; j < size; j++)
            if (!keep || keep[j]) chain[count++] = row[j];
        if (count) prox_row(chain, count, strength, chain + size);
        long place = 0;
        for (long j = 0; j < size; j++) {
            if ((!keep || keep[j]) && place < count) place++;
            out[i * size + j] = count ? (REAL)chain[place ? place - 1 : 0] : 0;
        }
    }
    free(chain);
    return 0;
}
