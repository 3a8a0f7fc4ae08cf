"""Run p4runtime-shell's own tests, and send each request that they make to a real switch, too.

forward_requests.py ADDRESS P4INFO CONFIG REPORT, in the folder of the checkout. Its tests have a server of their own
that answers what each test wants; the switch's answers are written to REPORT, as JSON: by test, whether it passed,
and each request with the code and the words of the answer. The pipeline that is pushed is P4INFO with CONFIG.
"""

import json
import queue
import re
import sys
import unittest
from pathlib import Path

import google.protobuf.text_format
import grpc
import nose2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

ADDRESS, P4INFO, CONFIG, REPORT = sys.argv[1:]
TIMEOUT_S = 10.0
DEVICE_ID = 0
MODULE = "p4runtime_sh.test"

# Requests name the table of a direct meter alone.
ASKED = Path("p4runtime_sh/testdata/unittest.p4info.pb.txt").read_text(encoding="utf-8")
DIRECT_METER = int(next(iter(re.findall(r"direct_meters \{\s*preamble \{\s*id: (\d+)", ASKED)), 0))

tests = {}
current = None
stub = p4runtime_pb2_grpc.P4RuntimeStub(grpc.insecure_channel(ADDRESS))
add_servicer = p4runtime_pb2_grpc.add_P4RuntimeServicer_to_server
run_case = unittest.TestCase.run


def note(what, code="OK", details="", used=()):
    """Record the switch's answer to a request of the test that runs, and the identifiers that it uses."""
    if current is not None:
        tests[current]["requests"].append([what, code, details, sorted(used)])


def identifiers(request):
    """Those of P4Info that a request names; of a table's meter, the meter's, too."""
    text = str(request)
    used = {int(number) for number in re.findall(r"\b\w*_id: (\d+)", text)}
    return used | ({DIRECT_METER} if "direct_meter_entry" in text or "meter_config" in text else set())


def call(what, function, request):
    """Send a request to the switch and record its answer."""
    try:
        answer = function(for_switch(request), timeout=TIMEOUT_S)
        if hasattr(answer, "__next__"):
            list(answer)
    except grpc.RpcError as error:
        note(what, error.code().name, describe(error), identifiers(request))
    else:
        note(what, used=identifiers(request))


def for_switch(request):
    """The request with the device that the switch is: some tests take the shell's default, others 0."""
    copy = type(request)()
    copy.CopyFrom(request)
    inner = copy.arbitration if "arbitration" in request.DESCRIPTOR.fields_by_name else copy
    if inner is copy and "device_id" in request.DESCRIPTOR.fields_by_name:
        copy.device_id = DEVICE_ID
    elif inner is not copy and request.HasField("arbitration"):
        inner.device_id = DEVICE_ID
    return copy


def describe(error):
    """What a Write's error says of its first update that failed; else what the call says."""
    from google.rpc import status_pb2

    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                one = p4runtime_pb2.Error()
                if detail.Unpack(one) and one.canonical_code:
                    return f"{grpc_name(one.canonical_code)}: {one.message}"
    return error.details()


def grpc_name(number):
    """The name of a canonical code."""
    return next((code.name for code in grpc.StatusCode if code.value[0] == number), str(number))


class Forwarding(p4runtime_pb2_grpc.P4RuntimeServicer):
    """Each request goes to the switch, then to the test's own servicer, which answers."""

    def __init__(self, inner):
        self.inner = inner

    def SetForwardingPipelineConfig(self, request, context):
        """Push the pipeline for the switch."""
        ours = p4runtime_pb2.SetForwardingPipelineConfigRequest()
        ours.CopyFrom(request)
        ours.config.Clear()
        google.protobuf.text_format.Merge(Path(P4INFO).read_text(encoding="utf-8"), ours.config.p4info)
        ours.config.p4_device_config = Path(CONFIG).read_bytes()
        call("SetForwardingPipelineConfig", stub.SetForwardingPipelineConfig, ours)
        return self.inner.SetForwardingPipelineConfig(request, context)

    def Write(self, request, context):
        """Name the updates by type and entity."""
        kinds = p4runtime_pb2.Update.Type
        what = ", ".join(f"{kinds.Name(each.type)} {each.entity.WhichOneof('entity')}" for each in request.updates)
        call(what, stub.Write, request)
        return self.inner.Write(request, context)

    def Read(self, request, context):
        """Name the entities."""
        call("READ " + ", ".join(str(each.WhichOneof("entity")) for each in request.entities), stub.Read, request)
        return self.inner.Read(request, context)

    def GetForwardingPipelineConfig(self, request, context):
        """The test's answer."""
        return self.inner.GetForwardingPipelineConfig(request, context)

    def Capabilities(self, request, context):
        """The test's answer; the switch is asked, too."""
        call("Capabilities", stub.Capabilities, request)
        return self.inner.Capabilities(request, context)

    def StreamChannel(self, request_iterator, context):
        """Arbitrate and send packets on a stream of the switch's that lasts as long as the test's."""
        outgoing = queue.Queue()
        answers = stub.StreamChannel(iter(outgoing.get, None))

        def forwarded():
            for request in request_iterator:
                outgoing.put(for_switch(request))
                kind = request.WhichOneof("update")
                if kind == "arbitration":
                    try:
                        status = next(answers).arbitration.status
                        note(kind, grpc_name(status.code), status.message)
                    except (grpc.RpcError, StopIteration) as error:
                        note(kind, "UNKNOWN", str(error))
                else:
                    note(kind)
                yield request

        try:
            yield from self.inner.StreamChannel(forwarded(), context)
        finally:
            outgoing.put(None)


def run(case, result=None):
    """Run one test, and record whether it passed."""
    global current
    current = case.id()
    tests[current] = {"passed": True, "requests": []}
    for name in ("addFailure", "addError"):
        setattr(result, name, failing(getattr(result, name)))
    try:
        return run_case(case, result)
    finally:
        current = None


def failing(report):
    """Report a failure of the test that runs, and record it."""

    def record(test, error):
        tests[test.id()]["passed"] = False
        tests[test.id()]["problem"] = str(error[1])
        return report(test, error)

    return record


p4runtime_pb2_grpc.add_P4RuntimeServicer_to_server = lambda servicer, server: add_servicer(
    Forwarding(servicer), server
)
unittest.TestCase.run = run
nose2.main(argv=["nose2", MODULE], module=None, exit=False)
Path(REPORT).write_text(json.dumps(tests), encoding="utf-8")
