"""The agent that runs a PyTorch script as one worker of a job, whichever system sums for it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from gradbed.common.errors import UserError
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.agents.description import Description, parse_description
from gradbed.hosts.agents.functions import description_type, find_function
from gradbed.hosts.agents.kernel.host_names import name_hosts
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.torch_hook.script import Script, run_script
from gradbed.hosts.torch_hook.session import Session
from gradbed.hosts.torch_hook.torch_extra import load_torch


class ScriptDescription(Description):
    """exchange: "module:function" of a gradbed.hosts.torch_hook.session.OpenExchange. Its second parameter is
    annotated with the job's type, a gradbed.hosts.collectives.job.CollectiveJob."""

    exchange: str
    job: dict[str, Any]
    index: int = Field(ge=0)
    script: Script


def prepare(description: ScriptDescription) -> None:
    """Load PyTorch and the exchange's module, once for all workers."""
    load_torch("a worker with a script")
    find_function(description.exchange)


def main(context: AgentContext, description: ScriptDescription) -> None:
    """Run the script to its end, then serve until stop."""
    context.require_kernel("a PyTorch script")
    open_exchange = find_function(description.exchange)
    job = parse_description(description_type(open_exchange, description.exchange), description.job)
    if not isinstance(job, CollectiveJob):
        raise UserError(f"{description.exchange} is not for workers that sum gradients")
    name_hosts({worker.ip: worker.name for worker in job.workers})
    run_script(description.script, Session(job, description.index, open_exchange, context), context)
