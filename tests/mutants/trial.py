"""python -m tests.mutants.trial SECTIONS: one run on the virtual clock, of a system and sections of its configuration
as JSON. Status 1, and the first failure, if the run finds itself wrong."""

from __future__ import annotations

import json
import sys

from gradbed.common.errors import UserError
from tests.unit.trials import virtual_trial


def main(text: str) -> int:
    sections = json.loads(text)
    system = sections.pop("system")
    try:
        failures = list(virtual_trial(system, **sections).failures)
    except UserError as error:
        failures = [str(error)]
    print(failures[0] if failures else "", file=sys.stderr)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
