/* Selected rows of a tensor, each extended at its end. */

/* old (some, heads, length, size), new (rows, heads, added, size) -> out (rows, heads, length + added, size), where `from`
   is the row of `old` that each one continues. Rows and heads of `new` are `row_stride` and `head_stride` numbers apart.
   Work is counted in rows. */
void NAME(grow)(const REAL *old, const int64_t *from, const REAL *new, REAL *out, long heads, long length, long added,
                long size, long row_stride, long head_stride, long added_stride, long first, long last) {
    for (long row = first; row < last; row++)
        for (long head = 0; head < heads; head++) {
            REAL *to = out + (row * heads + head) * (length + added) * size;
            memcpy(to, old + (from[row] * heads + head) * length * size, length * size * sizeof(REAL));
            to += length * size;
            for (long i = 0; i < added; i++)
                memcpy(to + i * size, new + row * row_stride + head * head_stride + i * added_stride,
                       size * sizeof(REAL));
        }
}
