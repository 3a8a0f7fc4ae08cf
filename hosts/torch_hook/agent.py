"""The agent that runs a PyTorch script as one worker of a job, whichever system sums for it.

The script runs in the agent's process, in the host's network.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
import traceback
from typing import Any

from pydantic import Field

from gradbed.common.caller import caller
from gradbed.common.errors import UserError
from gradbed.hosts import torch_hook
from gradbed.hosts.agents.config import AgentConfig, parse_config
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.agents.kernel.namespace import name_hosts
from gradbed.hosts.agents.launching import config_type, find_function
from gradbed.hosts.collectives.job import CollectiveJob, process_group_environment
from gradbed.hosts.torch_hook.session import Session
from gradbed.hosts.torch_hook.torch_extra import load_torch

# ---- The script ----


class Script(AgentConfig):
    """A script to run."""

    path: str
    arguments: tuple[str, ...] = ()
    output: str | tuple[int, int]
    """Descriptors of the script's standard output and error, or a file for both."""


def run_script(script: Script, session: Session, context: AgentContext) -> None:
    """Run a script to its end, then serve until stop. UserError if it fails; the traceback goes to its output.

    Under sudo the script runs as the person who called that, so that its files are theirs.
    """
    _redirect(script.output)
    person = caller()
    if person is not None:
        person.become()
    with session:
        os.environ.update(process_group_environment(session.job, session.index, context.interfaces[0]))
        torch_hook.attach(session)
        sys.argv = [script.path, *script.arguments]
        sys.path.insert(0, os.path.dirname(script.path))
        context.emit("ready")
        try:
            runpy.run_path(script.path, run_name="__main__")
        except SystemExit as ending:
            if ending.code not in (None, 0):
                raise UserError(f"the script ended with status {ending.code}") from None
        except UserError:
            raise
        except Exception as error:
            traceback.print_exc()
            reason = " ".join(str(error).split()) or "no message"
            raise UserError(f"the script failed: {type(error).__name__}: {reason}") from None
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        _close_process_group()
        session.finish()


def _close_process_group() -> None:
    """Close the process group, as the end of a process would: ranks that still wait for this one learn that it has
    ended.
    """
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()
    gc.collect()  # the script's objects, which hold connections, too


def _redirect(output: str | tuple[int, int]) -> None:
    """Let descriptors 1 and 2 be the script's."""
    if isinstance(output, str):
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        output = (descriptor, descriptor)
    for descriptor, standard in zip(output, (1, 2), strict=True):
        os.dup2(descriptor, standard)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


# ---- The agent ----


class ScriptConfig(AgentConfig):
    """The config of an agent that runs a script as one worker."""

    exchange: str
    """Exchange as "module:function", a gradbed.hosts.torch_hook.session.OpenExchange. Its second parameter is
    annotated with the job's type, a gradbed.hosts.collectives.job.CollectiveJob."""
    job: dict[str, Any]
    index: int = Field(ge=0)
    script: Script


def prepare(config: ScriptConfig) -> None:
    """Load PyTorch and the exchange's module, once for all workers."""
    load_torch("a worker with a script")
    find_function(config.exchange)


def main(context: AgentContext, config: ScriptConfig) -> None:
    """Run the script to its end, then serve until stop."""
    context.require_kernel("a PyTorch script")
    open_exchange = find_function(config.exchange)
    job = parse_config(config_type(open_exchange, config.exchange), config.job)
    if not isinstance(job, CollectiveJob):
        raise UserError(f"{config.exchange} is not for workers that sum gradients")
    name_hosts({worker.ip: worker.name for worker in job.workers})
    run_script(config.script, Session(job, config.index, open_exchange, context), context)
