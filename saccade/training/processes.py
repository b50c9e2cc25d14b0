"""The processes that train together, through Accelerate: device, sums over all of them, trackers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from saccade.artifacts import is_sharded, whole
from saccade.data.extra import required
from saccade.registry import nearest

if TYPE_CHECKING:
    from accelerate import Accelerator  # type: ignore[import-untyped]


class Processes:
    """One process, or all those that torchrun started, and how they communicate.

    Args:
        device: of the training.
        trackers: the trackers that Accelerate reports to.
        output: the run folder.
        sharded: whether several processes split the model among them (FSDP); otherwise each has all of it (DDP).
    """

    def __init__(self, *, device: str, trackers: list[str], output: Path, sharded: bool = False) -> None:
        accelerate = required("accelerate")
        check_trackers(trackers)
        check_device(device)
        if device.startswith("cuda:"):
            torch.cuda.set_device(device)
        # Accelerate remembers the settings of its first use; a notebook may train twice, on different devices.
        required("accelerate.state").AcceleratorState._reset_state()
        plugin = None
        if sharded and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            plugin = required("accelerate.utils").FullyShardedDataParallelPlugin(
                fsdp_version=2, auto_wrap_policy="no_wrap", cpu_ram_efficient_loading=False
            )
        self._accelerator: Accelerator = accelerate.Accelerator(
            fsdp_plugin=plugin,
            cpu=device == "cpu" or not torch.accelerator.is_available(),  # said, or several processes do not join
            log_with=list(trackers) or None,
            project_config=required("accelerate.utils").ProjectConfiguration(
                project_dir=str(output), logging_dir=str(output / "logs")
            ),
            kwargs_handlers=[
                required("accelerate.utils").InitProcessGroupKwargs(timeout=timedelta(hours=3)),
                # hard and stochastic attention may leave parameters of a step unused
                required("accelerate.utils").DistributedDataParallelKwargs(find_unused_parameters=True),
            ],
        )
        self.sharded = plugin is not None
        if self.sharded and not self._accelerator.is_fsdp2:  # Accelerate has it for GPUs; PyTorch, for CPUs as well
            self._accelerator.state.fsdp_plugin = plugin
            self._accelerator.state.distributed_type = required("accelerate").DistributedType.FSDP
        self.device: torch.device = self._accelerator.device
        self.count: int = self._accelerator.num_processes
        self.index: int = self._accelerator.process_index
        self.wide = torch.float32 if self.device.type == "mps" else torch.float64  # for sums over many batches
        self.main: bool = self._accelerator.is_main_process

    def share(self, module: nn.Module) -> nn.Module:
        """The module on this device; with several processes, its gradients become their mean over all.

        If it is sharded, its parameters are replaced by parts of them, in place.
        """
        if self.sharded:
            _check_shardable(module)
            split: nn.Module = required("accelerate.utils").fsdp2_prepare_model(self._accelerator, module)
            return split
        warnings.filterwarnings("ignore", message=".*find_unused_parameters=True was specified.*")
        shared: nn.Module = self._accelerator.prepare_model(module)
        return shared

    def unsynchronised(self, module: nn.Module) -> AbstractContextManager[Any]:
        """A context in which gradients stay local until the next backward pass outside it."""
        return self._accelerator.no_sync(module) if self.count > 1 else nullcontext()

    @contextmanager
    def whole(self, module: nn.Module) -> Iterator[None]:
        """A context in which every process has all parameters of a shared module, and can use them independently."""
        if not self.sharded:
            yield
            return
        module.unshard()  # type: ignore[operator]
        try:
            yield
        finally:
            module.reshard()  # type: ignore[operator]

    def release(self, module: nn.Module) -> None:
        """Permanently gives every process all parameters of a shared module, as ordinary ones; tied ones stay tied."""
        made: dict[int, nn.Parameter] = {}
        for each in module.modules():
            for name, parameter in list(each.named_parameters(recurse=False)):
                if is_sharded(parameter):
                    if id(parameter) not in made:
                        made[id(parameter)] = nn.Parameter(whole(parameter.detach()), parameter.requires_grad)
                    setattr(each, name, made[id(parameter)])

    def gathered(self, values: Any) -> Any:
        """Gathers tensors that are split among processes, in dictionaries and lists, in the first process."""
        if isinstance(values, dict):
            return {name: self.gathered(values[name]) for name in sorted(values, key=str)}  # the same order in all
        if isinstance(values, list):
            return [self.gathered(value) for value in values]
        if not isinstance(values, Tensor) or not is_sharded(values):
            return values
        full = whole(values)
        return full.cpu() if self.main else full.new_empty(0)

    def total(self, values: Tensor) -> list[float]:
        """The values summed over all processes."""
        summed: Tensor = self._accelerator.reduce(values, reduction="sum")
        numbers: list[float] = summed.tolist()
        return numbers

    def gather(self, value: Any) -> list[Any]:
        """The value of each process, in order."""
        values: list[Any] = required("accelerate.utils").gather_object([value])
        return values

    def from_main(self, make: Callable[[], Any]) -> Any:
        """What the main process makes, shared with all of them."""
        made = [make() if self.main else None]
        return required("accelerate.utils").broadcast_object_list(made)[0]

    def to_device(self, batch: Any) -> Any:
        return required("accelerate.utils").send_to_device(batch, self.device)

    def wait(self) -> None:
        """Waits until all processes are here."""
        self._accelerator.wait_for_everyone()

    def begin_tracking(self) -> None:
        self._accelerator.init_trackers("saccade")

    def track(self, values: dict[str, Any], step: int) -> None:
        self._accelerator.log(values, step=step)

    def end_tracking(self) -> None:
        for tracker in self._accelerator.trackers:
            tracker.finish()


def _check_shardable(module: nn.Module) -> None:
    for name, parameter in module.named_parameters():
        if not parameter.dim():
            raise ValueError(
                f"sharding='fsdp' splits parameters by rows, but {name.removeprefix('model.')} is a single number: "
                "train this model without sharding."
            )


def check_device_name(device: str) -> None:
    """Raises unless it is the name of a device, which may be on another machine."""
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda", "mps") or (number and (kind != "cuda" or not number.isdecimal())):
        hint = f" Did you mean {device.lower().replace('gpu', 'cuda', 1)}?" if kind.lower() in ("gpu", "cuda") else ""
        raise ValueError(f"device must be auto, cpu, cuda, cuda:0 (a number from 0) or mps, got {device!r}.{hint}")


def check_device(device: str) -> None:
    """Raises unless this machine has the device."""
    check_device_name(device)
    kind, _, number = device.partition(":")
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r}: there is no GPU here that PyTorch can use. Leave device at auto or cpu.")
    if kind == "cuda" and number and int(number) >= torch.cuda.device_count():
        raise ValueError(f"device={device!r}: there are {torch.cuda.device_count()} GPUs here, counted from 0.")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError(f"device={device!r}: this machine has no Apple GPU. Leave device at auto or cpu.")


def check_trackers(names: list[str]) -> None:
    """Raises unless each is a tracker that Accelerate knows and that is installed."""
    if not names:
        return
    known = [str(kind) for kind in required("accelerate.utils").LoggerType.list()]
    available = {str(kind) for kind in required("accelerate.tracking").get_available_trackers()}
    for name in names:
        if name not in known:
            raise ValueError(f"Unknown tracker {name!r}.{nearest(name, known)}")
        if name not in available:
            extra = '"saccade[train]"' if name == "tensorboard" else name
            raise ModuleNotFoundError(f"The tracker {name!r} is not installed: pip install {extra}")
