"""Training that is bit for bit repeatable: data, model, quantisation, workers and their single-process reference.

Importing any module of this package binds BLAS to one thread, because the order in which several threads add
floating-point numbers is not fixed. The variables act on libraries loaded later (and on child processes);
threadpoolctl acts on those that some other package has loaded already.
"""

from __future__ import annotations

import os
import sys

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"
if "numpy" in sys.modules:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    threadpool_limits(limits=1, user_api="blas")
