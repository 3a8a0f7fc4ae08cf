"""A plugin of pytest: sleeps of asyncio take GRADBED_SLEEP_FACTOR times as long in the process of the tests."""

import asyncio
import os

FACTOR = float(os.environ["GRADBED_SLEEP_FACTOR"])
_sleep = asyncio.sleep


async def longer_sleep(delay: float, result: object = None) -> object:
    """Wait longer; a sleep of 0 only lets others run."""
    return await _sleep(delay * FACTOR, result)


asyncio.sleep = longer_sleep
