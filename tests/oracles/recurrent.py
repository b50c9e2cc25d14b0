"""The equations of the recurrent papers, step by step and row by row."""

import torch


def sigmoid(x):
    return 1 / (1 + torch.exp(-x))


def gru_before(x_r, x_z, x_n, h, U_r, U_z, U_n):
    """Cho et al. 2014, section 2.3: one vector each."""
    r, z = sigmoid(x_r + U_r @ h), sigmoid(x_z + U_z @ h)
    candidate = torch.tanh(x_n + U_n @ (r * h))
    return z * h + (1 - z) * candidate


def lstm(x_i, x_f, x_g, x_o, h, c, U_i, U_f, U_g, U_o):
    i, f, o = sigmoid(x_i + U_i @ h), sigmoid(x_f + U_f @ h), sigmoid(x_o + U_o @ h)
    c = f * c + i * torch.tanh(x_g + U_g @ h)
    return o * torch.tanh(c), c


def maxout(x):
    return torch.stack([torch.maximum(x[2 * k], x[2 * k + 1]) for k in range(len(x) // 2)])


def run_gru_before(inputs, W, b, U):
    """States of one row: inputs (length, input_dim), W (3n, input_dim), U (3n, n)."""
    n = U.shape[1]
    h, states = torch.zeros(n, dtype=U.dtype), []
    for x in inputs:
        p = W @ x + b
        h = gru_before(p[:n], p[n : 2 * n], p[2 * n :], h, U[:n], U[n : 2 * n], U[2 * n :])
        states.append(h)
    return states


def run_lstm(inputs, W, b, U, h=None, c=None):
    n = U.shape[1]
    h = torch.zeros(n, dtype=U.dtype) if h is None else h
    c = torch.zeros(n, dtype=U.dtype) if c is None else c
    states = []
    for x in inputs:
        h, c = lstm(*(W @ x + b).chunk(4), h, c, *U.chunk(4))
        states.append((h, c))
    return states


def run_lstmn(inputs, W, b, U, score, source=None):
    """Cheng et al. 2016, equations 4 to 10, of one row; with a source (g, m, score, W_r, U_r, b_r), 12 to 16.

    `score(x, previous, states)` gives the scores of all earlier states.
    """
    n = U.shape[1]
    zeros = torch.zeros(n, dtype=U.dtype)
    hidden, cells, read, source_read, intra, inter = [], [], zeros, zeros, [], []
    for x in inputs:
        cell = zeros
        if hidden:
            weights = torch.softmax(torch.stack([score(x, read, h) for h in hidden]), 0)
            read = sum(w * h for w, h in zip(weights, hidden, strict=True))
            cell = sum(w * c for w, c in zip(weights, cells, strict=True))
            intra.append(weights)
        x_i, x_f, x_g, x_o = (W @ x + b).chunk(4)
        U_i, U_f, U_g, U_o = U.chunk(4)
        c = sigmoid(x_f + U_f @ read) * cell + sigmoid(x_i + U_i @ read) * torch.tanh(x_g + U_g @ read)
        if source is not None:
            g, m, source_score, W_r, U_r, b_r = source
            weights = torch.softmax(torch.stack([source_score(x, source_read, each) for each in g]), 0)
            source_read = sum(w * each for w, each in zip(weights, g, strict=True))
            memory = sum(w * each for w, each in zip(weights, m, strict=True))
            c = c + sigmoid(W_r @ x + U_r @ source_read + b_r) * memory
            inter.append(weights)
        hidden.append(sigmoid(x_o + U_o @ read) * torch.tanh(c))
        cells.append(c)
    return torch.stack(hidden), torch.stack(cells), intra, inter


def run_rcnn(inputs, W, b, W_1, b_1, W_2, b_2, U, bias, state=None):
    """Lei et al. 2016, section 4.2, order 2: h, c_1 and c_2 after each word of one row."""
    h, c_1, c_2 = state if state is not None else (torch.zeros(len(U), dtype=U.dtype),) * 3
    states = []
    for x in inputs:
        gate = sigmoid(W @ x + b + U @ h)
        c_1, c_2 = gate * c_1 + (1 - gate) * (W_1 @ x + b_1), gate * c_2 + (1 - gate) * (c_1 + W_2 @ x + b_2)
        h = torch.tanh(c_2 + bias)
        states.append((h, c_1, c_2))
    return states
