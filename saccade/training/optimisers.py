"""Optimisers: PyTorch's, with their own options; the learning rate and the weight decay are the trainer's."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import increment_version

from saccade.registry import Registry


class Optimiser:
    """Makes one of PyTorch's optimisers for a model."""

    kind: Callable[..., torch.optim.Optimizer]
    fused: bool = False
    """Whether PyTorch updates all parameters in one kernel, on the CPU too: several times faster."""

    def options(self) -> dict[str, Any]:
        """Its own arguments, under PyTorch's names."""
        raise NotImplementedError

    def create(self, model: nn.Module, *, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
        """Creates the optimiser; weight decay applies to matrices, not to biases, gains and other vectors.

        Nor does it apply to parameters with an attribute `no_decay`, such as a table with frozen rows.
        """
        trained = [p for p in model.parameters() if p.requires_grad]
        if not trained:
            raise ValueError("The model has no parameters to train: every one has requires_grad=False.")
        groups: list[dict[str, Any]] = [{"params": trained, "weight_decay": 0.0}]
        if weight_decay:
            decays = [p.dim() > 1 and not getattr(p, "no_decay", False) for p in trained]
            groups = [
                {"params": [p for p, yes in zip(trained, decays, strict=True) if yes], "weight_decay": weight_decay},
                {"params": [p for p, yes in zip(trained, decays, strict=True) if not yes], "weight_decay": 0.0},
            ]
        fused = {"fused": True} if self.fused and trained[0].device.type in ("cpu", "cuda") else {}
        made = self.kind([g for g in groups if g["params"]], lr=learning_rate, **fused, **self.options())
        if fused:  # whose kernels do not note that they change parameters, which copies for fast decoding rely on
            made.register_step_post_hook(lambda *_: increment_version(trained))
        return made


optimisers: Registry[Optimiser] = Registry("optimiser", base=Optimiser, home="saccade.training")


@optimisers.register("adam")
class Adam(Optimiser):
    """Adam.

    Args:
        betas: how slowly the running means of the gradient and of its square move.
        epsilon: what is added to the denominator.

    Reference:
        Kingma and Ba (2015), arXiv:1412.6980.
    """

    kind: Callable[..., torch.optim.Optimizer] = torch.optim.Adam
    fused = True

    def __init__(self, *, betas: tuple[float, float] = (0.9, 0.999), epsilon: float = 1e-8) -> None:
        self.betas = betas
        self.epsilon = epsilon

    def options(self) -> dict[str, Any]:
        return {"betas": tuple(self.betas), "eps": self.epsilon}


@optimisers.register("adamw")
class AdamW(Adam):
    """Adam with decoupled weight decay.

    Args:
        betas: how slowly the running means of the gradient and of its square move.
        epsilon: what is added to the denominator.

    Reference:
        Loshchilov and Hutter (2019), arXiv:1711.05101.
    """

    kind = torch.optim.AdamW


@optimisers.register("adadelta")
class Adadelta(Optimiser):
    """Adadelta, the optimiser of RNNsearch (rho 0.95, epsilon 1e-6, with a learning rate of 1).

    Args:
        rho: how slowly the running means move.
        epsilon: what is added inside the square roots.

    Reference:
        Zeiler (2012), arXiv:1212.5701.
    """

    kind = torch.optim.Adadelta

    def __init__(self, *, rho: float = 0.95, epsilon: float = 1e-6) -> None:
        self.rho = rho
        self.epsilon = epsilon

    def options(self) -> dict[str, Any]:
        return {"rho": self.rho, "eps": self.epsilon}


@optimisers.register("adagrad")
class Adagrad(Optimiser):
    """Adagrad.

    Args:
        epsilon: what is added to the denominator.

    Reference:
        Duchi et al. (2011).
    """

    kind = torch.optim.Adagrad

    def __init__(self, *, epsilon: float = 1e-10) -> None:
        self.epsilon = epsilon

    def options(self) -> dict[str, Any]:
        return {"eps": self.epsilon}


@optimisers.register("rmsprop")
class RMSprop(Optimiser):
    """RMSprop.

    Args:
        alpha: how slowly the running mean of the squared gradient moves.
        epsilon: what is added to the denominator.
        momentum: how much of the last update is repeated.
    """

    kind = torch.optim.RMSprop

    def __init__(self, *, alpha: float = 0.99, epsilon: float = 1e-8, momentum: float = 0.0) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.momentum = momentum

    def options(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "eps": self.epsilon, "momentum": self.momentum}


@optimisers.register("sgd")
class SGD(Optimiser):
    """Stochastic gradient descent.

    Args:
        momentum: how much of the last update is repeated.
        nesterov: whether the gradient is taken ahead, where momentum leads.
    """

    kind = torch.optim.SGD
    fused = True

    def __init__(self, *, momentum: float = 0.0, nesterov: bool = False) -> None:
        self.momentum = momentum
        self.nesterov = nesterov

    def options(self) -> dict[str, Any]:
        return {"momentum": self.momentum, "nesterov": self.nesterov}
