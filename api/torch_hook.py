"""Gradients of a PyTorch script through the emulated network, for scripts that `gradbed run torch` starts.

    from gradbed import torch_hook

    model = DistributedDataParallel(MyModel())
    if torch_hook.available():
        torch_hook.register(model)

docs/torch.md says what happens then.
"""

from gradbed.hosts.torch_hook import available, register

__all__ = ["available", "register"]
