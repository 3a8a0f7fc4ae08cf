"""Push a pipeline without arbitration: push_pipeline.py ADDRESS P4INFO CONFIG SECONDS.

Runs in the Python of another repository's tests. SECONDS: how long to wait for the switch.
"""

import sys
from pathlib import Path

import google.protobuf.text_format
import grpc
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

address, p4info, config, seconds = sys.argv[1:]
request = p4runtime_pb2.SetForwardingPipelineConfigRequest()
google.protobuf.text_format.Merge(Path(p4info).read_text(encoding="utf-8"), request.config.p4info)
request.config.p4_device_config = Path(config).read_bytes()
request.action = request.VERIFY_AND_COMMIT
stub = p4runtime_pb2_grpc.P4RuntimeStub(grpc.insecure_channel(address))
try:
    stub.SetForwardingPipelineConfig(request, wait_for_ready=True, timeout=float(seconds))
except grpc.RpcError as error:
    sys.exit(f"P4RuntimeError: {error.code().name}: {error.details()}")
