/* One step of all layers of a Transformer decoder. Float only.

   Rows do not depend on each other. The past is not copied: each step left its keys and values where it wrote them, and
   `ancestry` says which row of that step each hypothesis continues. */

struct norm {
    const float *gain, *bias;
};

struct layer {
    struct linear query, key, value, output, across_query, across_output, hidden, back;
    struct norm around_self, around_across, around_feed_forward;
    const float *source_keys;   /* (sentences, heads, size, source_room): positions next to each other */
    const float *source_values; /* of sentence b, head h, position s: at b, h, s times their strides */
};

/* As Python lays it out: numbers, then pointers. */
struct decoder {
    long layers, dim, heads, hidden, before, activation;  /* before: normalises before each sublayer, not after it */
    long rows, steps;                                     /* of this step, and before it */
    long source_length, source_room;                      /* its positions, and so many in whole vectors */
    long sentence_stride, head_stride, position_stride;   /* of source values */
    const struct layer *layer;
    const struct norm *final; /* null: none */
    const float *const *past; /* for each step before (layers, its rows, 2, dim): keys and values */
    const int64_t *past_rows, *ancestry;
    const int64_t *sentences; /* (rows,): the source of each */
    const uint8_t *mask; /* (sentences, source_length) */
    float *now;          /* the keys and values of this step */
    float *weights;      /* (rows, source_length): mean over heads of the last layer's attention to the source */
};

static void normalise(const struct norm *norm, const float *x, float *y, long rows, long dim, float epsilon) {
    long full = dim / LANES * LANES;
    for (long r = 0; r < rows; r++, x += dim, y += dim) {
        vec sums = {0}, squares = {0};
        float sum = 0, square = 0;
        for (long j = 0; j < full; j += LANES) sums += load(x + j);
        for (long j = full; j < dim; j++) sum += x[j];
        float mean = (sum + total(sums)) / dim;
        for (long j = 0; j < full; j += LANES) {
            vec away = load(x + j) - mean;
            squares += away * away;
        }
        for (long j = full; j < dim; j++) square += (x[j] - mean) * (x[j] - mean);
        float factor = 1.0f / __builtin_sqrtf((square + total(squares)) / dim + epsilon);
        for (long j = 0; j < full; j += LANES)
            store(y + j, (load(x + j) - mean) * factor * load(norm->gain + j) + load(norm->bias + j));
        for (long j = full; j < dim; j++) y[j] = (x[j] - mean) * factor * norm->gain[j] + norm->bias[j];
    }
}

/* Scores of one head -> weights, zero where they are -infinity or where there is nothing else. Whole vectors. */
INLINE void to_weights(float *scores, long count) {
    vec most = splat(-__builtin_inff()), sums = {0};
    for (long t = count; t % LANES; t++) scores[t] = -__builtin_inff();
    for (long t = 0; t < count; t += LANES) most = larger(load(scores + t), most);
    float top = largest(most);
    for (long t = 0; t < count; t += LANES) {
        vec score = load(scores + t);
        vec weight = choose(score == -__builtin_inff(), (vec){0}, relative_exponential(score, top));
        store(scores + t, weight);
        sums += weight;
    }
    float sum = total(sums), factor = sum == 0 ? 0 : 1 / sum;
    for (long t = 0; t < count; t += LANES) store(scores + t, load(scores + t) * factor);
}

/* The sum of values (count, size), `stride` numbers apart, or else each at its own place, times their weights. */
INLINE void weigh(const float *weights, const float *first, long stride, const float *const *places, long offset,
                  long count, long size, float *out) {
    long j = 0;
#define VALUE(t) (places ? places[t] + offset : first + (t) * stride)
    for (; j + 2 * LANES <= size; j += 2 * LANES) {
        vec low = {0}, high = {0}, other_low = {0}, other_high = {0};
        long t = 0;
        for (; t + 2 <= count; t += 2) {
            const float *value = VALUE(t) + j, *next = VALUE(t + 1) + j;
            low += weights[t] * load(value);
            high += weights[t] * load(value + LANES);
            other_low += weights[t + 1] * load(next);
            other_high += weights[t + 1] * load(next + LANES);
        }
        if (t < count) {
            low += weights[t] * load(VALUE(t) + j);
            high += weights[t] * load(VALUE(t) + j + LANES);
        }
        store(out + j, low + other_low);
        store(out + j + LANES, high + other_high);
    }
    for (; j + LANES <= size; j += LANES) {
        vec sum = {0};
        for (long t = 0; t < count; t++) sum += weights[t] * load(VALUE(t) + j);
        store(out + j, sum);
    }
    for (; j < size; j++) {
        float sum = 0;
        for (long t = 0; t < count; t++) sum += weights[t] * VALUE(t)[j];
        out[j] = sum;
    }
#undef VALUE
}

/* One query (heads * size) over the past, whose keys and values (heads * size) are at these places. */
static void attend_past(const struct decoder *d, const float *query, const float *const *keys,
                        const float *const *values, long count, float scale, float *scores, float *out) {
    long size = d->dim / d->heads, full = size / LANES * LANES;
    for (long h = 0; h < d->heads; h++) {
        const float *q = query + h * size;
        for (long t = 0; t < count; t++) {
            const float *key = keys[t] + h * size;
            vec products = {0};
            float score = 0;
            for (long j = 0; j < full; j += LANES) products += load(q + j) * load(key + j);
            for (long j = full; j < size; j++) score += q[j] * key[j];
            scores[t] = (score + total(products)) * scale;
        }
        to_weights(scores, count);
        weigh(scores, NULL, 0, values, h * size, count, size, out + h * size);
    }
}

/* One query (heads * size) over its source. Adds the mean of the weights over heads to `mean`, unless it is null. */
static void attend_source(const struct decoder *d, const struct layer *layer, long sentence, const float *query,
                          float scale, float *scores, float *out, float *mean) {
    long size = d->dim / d->heads, length = d->source_length, room = d->source_room;
    const uint8_t *mask = d->mask + sentence * length;
    for (long h = 0; h < d->heads; h++) {
        const float *q = query + h * size, *keys = layer->source_keys + (sentence * d->heads + h) * size * room;
        for (long t = 0; t < length; t += LANES) {
            vec even = {0}, odd = {0};
            long j = 0;
            for (; j + 2 <= size; j += 2) {
                even += q[j] * load(keys + j * room + t);
                odd += q[j + 1] * load(keys + (j + 1) * room + t);
            }
            if (j < size) even += q[j] * load(keys + j * room + t);
            store(scores + t, (even + odd) * scale);
        }
        for (long t = 0; t < length; t++)
            if (!mask[t]) scores[t] = -__builtin_inff();
        to_weights(scores, length);
        if (mean)
            for (long t = 0; t < length; t++) mean[t] += scores[t] / d->heads;
        const float *values = layer->source_values + sentence * d->sentence_stride + h * d->head_stride;
        weigh(scores, values, d->position_stride, NULL, 0, length, size, out + h * size);
    }
}

/* Scratch of one block of rows; x are the states. */
struct scratch {
    float *x, *normal, *query, *context, *hidden, *scores;
    const float **keys, **values, **next; /* of the past of one row; the keys of the row after it */
    struct inputs in;
    float epsilon, scale;
};

/* What a sublayer reads: the states, normalised if that is done before; as whole numbers too, if `w` needs them. */
static void enter(const struct decoder *d, const struct norm *norm, const struct linear *w, struct scratch *s, long rows) {
    if (d->before) normalise(norm, s->x, s->normal, rows, d->dim, s->epsilon);
    s->in.x = d->before ? s->normal : s->x;
    s->in.stride = d->dim;
    if (w->scales) to_whole(&s->in, rows, d->dim);
}

/* Adds a projection of `from` (rows, w->in) to the states. */
static void leave(const struct decoder *d, const struct norm *norm, const struct linear *w, const float *from,
                  struct scratch *s, long rows) {
    s->in.x = from;
    s->in.stride = w->in;
    if (w->scales) to_whole(&s->in, rows, w->in);
    linear(w, &s->in, rows, s->x, d->dim, PLAIN, 1);
    if (!d->before) normalise(norm, s->x, s->x, rows, d->dim, s->epsilon);
}

INLINE const float *past_key(const struct decoder *d, long layer, long row, long t) {
    return d->past[t] + (layer * d->past_rows[t] + d->ancestry[row * d->steps + t]) * 2 * d->dim;
}

static void run_layer(const struct decoder *d, long number, struct scratch *s, long first, long rows) {
    const struct layer *layer = d->layer + number;
    long dim = d->dim;
    float *own = d->now + (number * d->rows + first) * 2 * dim;
    enter(d, &layer->around_self, &layer->query, s, rows);
    linear(&layer->query, &s->in, rows, s->query, dim, PLAIN, 0);
    linear(&layer->key, &s->in, rows, own, 2 * dim, PLAIN, 0);
    linear(&layer->value, &s->in, rows, own + dim, 2 * dim, PLAIN, 0);
    for (long t = 0; t < d->steps; t++) s->keys[t] = past_key(d, number, first, t);
    for (long r = 0; r < rows; r++) {
        for (long t = 0; t < d->steps; t++) {
            s->values[t] = s->keys[t] + dim;
            s->next[t] = r + 1 < rows ? past_key(d, number, first + r + 1, t) : s->keys[t];
            if (s->next[t] != s->keys[t]) /* seldom in the cache: far more is kept than fits */
                for (long j = 0; j < 2 * dim; j += 16) __builtin_prefetch(s->next[t] + j);
        }
        s->keys[d->steps] = own + r * 2 * dim;
        s->values[d->steps] = s->keys[d->steps] + dim;
        attend_past(d, s->query + r * dim, s->keys, s->values, d->steps + 1, s->scale, s->scores, s->context + r * dim);
        const float **swap = s->keys;
        s->keys = s->next;
        s->next = swap;
    }
    leave(d, &layer->around_self, &layer->output, s->context, s, rows);

    enter(d, &layer->around_across, &layer->across_query, s, rows);
    linear(&layer->across_query, &s->in, rows, s->query, dim, PLAIN, 0);
    for (long r = 0; r < rows; r++) {
        float *mean = number == d->layers - 1 ? d->weights + (first + r) * d->source_length : NULL;
        if (mean) memset(mean, 0, d->source_length * sizeof(float));
        attend_source(d, layer, d->sentences[first + r], s->query + r * dim, s->scale, s->scores, s->context + r * dim,
                      mean);
    }
    leave(d, &layer->around_across, &layer->across_output, s->context, s, rows);

    enter(d, &layer->around_feed_forward, &layer->hidden, s, rows);
    linear(&layer->hidden, &s->in, rows, s->hidden, d->hidden, d->activation, 0);
    leave(d, &layer->around_feed_forward, &layer->back, s->hidden, s, rows);
}

/* inputs (rows, dim) -> features (rows, dim). Work is counted in rows. Returns 0, or 1 if there is no memory. */
long NAME(decoder_step)(const struct decoder *d, const float *inputs, float *features, double epsilon, double scale,
                        long first, long last) {
    long block = block_of(last - first, 108), dim = d->dim, most = d->hidden > dim ? d->hidden : dim;
    long positions = (d->steps + 1 > d->source_length ? d->steps + 1 : d->source_length) + LANES;
    long floats = block * (4 * dim + d->hidden + 1) + positions;
    char *memory = malloc(floats * sizeof(float) + 3 * positions * sizeof(float *) + block * padded(most) + 64);
    if (!memory) return 1;
    struct scratch s = {.epsilon = epsilon, .scale = scale};
    s.keys = (const float **)memory;
    s.values = s.keys + positions;
    s.next = s.values + positions;
    s.x = (float *)(s.next + positions);
    s.normal = s.x + block * dim;
    s.query = s.normal + block * dim;
    s.context = s.query + block * dim;
    s.hidden = s.context + block * dim;
    s.scores = s.hidden + block * d->hidden;
    s.in.scale = s.scores + positions;
    s.in.whole = (uint8_t *)(s.in.scale + block);
    for (long row = first; row < last; row += block) {
        long rows = last - row < block ? last - row : block;
        memcpy(s.x, inputs + row * dim, rows * dim * sizeof(float));
        for (long number = 0; number < d->layers; number++) run_layer(d, number, &s, row, rows);
        if (d->final)
            normalise(d->final, s.x, features + row * dim, rows, dim, epsilon);
        else
            memcpy(features + row * dim, s.x, rows * dim * sizeof(float));
    }
    free(memory);
    return 0;
}
