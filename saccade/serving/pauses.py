"""No long pauses by Python's garbage collector."""

import gc


def spare_collector() -> None:
    """Exempts everything that is in memory from the garbage collector, once a process is ready to serve.

    A full collection looks at every object of every loaded library, which takes a fifth of a second, and requests would
    have to wait for it. What becomes garbage afterwards is still collected.
    """
    gc.unfreeze()  # what an earlier model has left
    gc.collect()
    gc.freeze()
