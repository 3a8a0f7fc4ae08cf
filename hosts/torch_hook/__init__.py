"""Gradients of PyTorch models through the emulated network: a communication hook for DistributedDataParallel.

A script that `gradbed run torch` starts once in every worker's host needs one more line than any other:

    model = DistributedDataParallel(MyModel())
    torch_hook.register(model)

From then on every backward pass sums the gradients through the network's switches (docs/torch.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from gradbed.hosts.torch_hook.session import Session

_session: Session | None = None


def attach(session: Session) -> None:
    """Called by the agent before it runs the script."""
    global _session
    _session = session


def available() -> bool:
    """Return whether this process is one of `gradbed run torch`."""
    return _session is not None


def register(model: Any) -> None:
    """Let a DistributedDataParallel model take the mean of its gradients through the network.

    Call it once, on every rank, before the first backward pass. Returns when all ranks have. The parameters that
    require gradients are those that do now. UserError outside `gradbed run torch`, or if it is called again.
    """
    if _session is None:
        raise UserError("torch_hook.register works under 'gradbed run torch' only (torch_hook.available() tells)")
    from gradbed.hosts.torch_hook.hook import GradientMean

    GradientMean(model, _session).install()
