"""Pipelines by their content, so that a fabric of equal switches verifies and compiles its program once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import Executor
from typing import Any

from switch.state.pipeline import Build, Pipeline, build_pipeline, pipeline_digest

KEPT_PIPELINES = 16


class PipelineCache:
    """Used from one event loop; the work is done in an executor, so that other requests go on."""

    def __init__(self, build: Build, executor: Executor) -> None:
        self._build = build
        self._executor = executor
        self._pipelines: OrderedDict[str, asyncio.Task[Pipeline]] = OrderedDict()

    async def get(self, config: Any) -> Pipeline:
        """The pipeline of a ForwardingPipelineConfig. Raises RequestError; failures are not kept."""
        key = pipeline_digest(config)
        task = self._pipelines.get(key)
        if task is None:
            task = self._pipelines[key] = asyncio.create_task(self._start(config))
            task.add_done_callback(lambda done: self._drop_failed(key, done))
            while len(self._pipelines) > KEPT_PIPELINES:
                self._pipelines.popitem(last=False)
        self._pipelines.move_to_end(key)
        # A client that gives up does not take the work away from those who wait for the same program.
        return await asyncio.shield(task)

    async def _start(self, config: Any) -> Pipeline:
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, build_pipeline, config.p4info, config.p4_device_config, self._build
        )

    def _drop_failed(self, key: str, task: asyncio.Task[Pipeline]) -> None:
        if (task.cancelled() or task.exception() is not None) and self._pipelines.get(key) is task:
            del self._pipelines[key]
